-- name: exists
select to_regclass('standfast.instances') is not null

-- name: try_lock
-- The migration lock.
select pg_try_advisory_xact_lock(4773520041)

-- name: impatient
select set_config('lock_timeout', '3s', true)

-- name: hold
-- No work begins and no worker registers until the decision.
lock table standfast.instances, standfast.workers in access exclusive mode

-- name: standing
select (select count(*) from standfast.instances), (select count(*) from standfast.instances where ended_at is null),
    (select count(*) from standfast.workers where alive_until > ?::timestamptz)

-- name: clock
select clock_timestamp()
