-- name: is_here
select coalesce(nullif(current_setting('holdfast.newest', true), ''), '0') from holdfast.meta where name = 'identity' and value = ?::text

-- name: mark
savepoint holdfast

-- name: keep
release savepoint holdfast

-- name: undo
rollback to savepoint holdfast

-- name: hint
-- The next command of the same transaction puts its events behind those of this one.
select pg_notify('holdfast', ''), set_config('holdfast.newest', (
    select max(e.position)::text from unnest(?::uuid[]) as u (instance)
    cross join lateral (
        select position from holdfast.events where instance = u.instance order by sequence desc limit 1
    ) as e
), true)
