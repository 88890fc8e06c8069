-- name: clock
select coalesce(?::timestamptz, clock_timestamp())

-- name: beat
insert into standfast.workers (id, name, handlers, started_at, alive_until)
values (?::uuid, ?::text, ?::text[], ?::timestamptz, ?::timestamptz)
on conflict (id) do update set handlers = excluded.handlers, alive_until = excluded.alive_until

-- name: remove_dead
delete from standfast.workers where alive_until < ?::timestamptz returning id

-- name: free_owned
update standfast.effects set owner = null, claimed_at = null, fence = fence + 1 where owner = any (?::uuid[]) returning handler

-- name: free_orphans
-- Only live workers own effects.
update standfast.effects e set owner = null, claimed_at = null, fence = fence + 1
where e.owner is not null and not exists (select 1 from standfast.workers w where w.id = e.owner)

-- name: still_held
select u.instance, u.number, u.fence, e.stop_requested,
    -- Not written as a condition, because the index of ended instances would be read whole.
    e.stop_requested and coalesce((select i.ended_at is not null from standfast.instances i where i.id = u.instance), false)
from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
cross join lateral (
    select stop_requested from standfast.effects
    where instance = u.instance and number = u.number and owner = u.owner and fence = u.fence offset 0
) as e

-- name: maintenance
select value from standfast.meta where name = 'maintenance'

-- name: schema
select coalesce(max(number), 0) from standfast.migrations

-- name: retire
delete from standfast.workers where id = ?::uuid

-- name: live
select id, name, handlers, started_at, alive_until from standfast.workers
where alive_until >= coalesce(?::timestamptz, clock_timestamp()) order by started_at, id

-- name: announce
-- The process that advances the time makes the report. Others wait until it is old enough again.
insert into standfast.meta (name, value) values ('unhandled:' || ?::text, (?::timestamptz)::text)
on conflict (name) do update set value = excluded.value
where meta.value::timestamptz <= excluded.value::timestamptz - ?::interval returning 1
