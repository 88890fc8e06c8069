-- name: is_here
select 1 from holdfast.meta where name = 'identity' and value = ?::text

-- name: mark
savepoint holdfast

-- name: keep
release savepoint holdfast

-- name: undo
rollback to savepoint holdfast

-- name: hint
select pg_notify('holdfast', '')
