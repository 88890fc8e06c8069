-- name: is_here
select coalesce(nullif(current_setting('standfast.newest', true), ''), '0') from standfast.meta where name = 'identity' and value = ?::text

-- name: mark
savepoint standfast

-- name: keep
release savepoint standfast

-- name: undo
rollback to savepoint standfast

-- name: hint
-- The next command of the same transaction places its events after those of this one.
select pg_notify('standfast', ''), set_config('standfast.newest', (
    select max(e.position)::text from unnest(?::uuid[]) as u (instance)
    cross join lateral (
        select position from standfast.events where instance = u.instance order by sequence desc limit 1
    ) as e
), true)
