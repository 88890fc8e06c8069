-- name: is_here
select 1 from meta where name = 'identity' and value = ?;

-- name: begin
begin immediate;

-- name: mark
savepoint holdfast;

-- name: keep
release savepoint holdfast;

-- name: undo
rollback to savepoint holdfast;
