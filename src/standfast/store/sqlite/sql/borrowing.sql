-- name: is_here
select 1 from meta where name = 'identity' and value = ?;

-- name: begin
begin immediate;

-- name: mark
savepoint standfast;

-- name: keep
release savepoint standfast;

-- name: undo
rollback to savepoint standfast;
