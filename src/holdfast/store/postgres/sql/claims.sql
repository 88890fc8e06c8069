-- name: clock
select clock_timestamp()

-- name: claim_effects
-- The index gives the most urgent rows of each handler first, and those of equal rank in the order of instances and numbers; nothing
-- is sorted but the few that were picked.
update holdfast.effects e set
    owner = ?::uuid, claimed_at = coalesce(?::timestamptz, clock_timestamp()), fence = fence + 1, attempts = attempts + 1
where e.ctid = any (array(
    select p.ctid
    from unnest(?::text[], ?::int4[]) as w (handler, most)
    cross join lateral (
        select r.ctid, r.rank, r.instance, r.number from holdfast.effects r
        where r.handler = w.handler and r.owner is null and r.parked_until is null
        order by r.rank, r.instance, r.number limit w.most for update skip locked
    ) as p
    where not exists (select 1 from holdfast.meta where name = 'maintenance')
    order by p.rank, p.instance, p.number limit ?::int8
))
returning e.instance, e.number, e.tenant, e.definition, e.handler, e.type, e.version, e.data, e.options, e.priority, e.rank,
    e.parked_until, e.owner, e.fence, e.attempts, e.error, e.created_at, e.claimed_at, e.stop_requested

-- name: retry_effect
update holdfast.effects set owner = null, claimed_at = null, parked_until = ?::timestamptz, error = ?::text
where instance = ?::uuid and number = ?::int4 and owner = ?::uuid and fence = ?::int4

-- name: release_effects
update holdfast.effects e set owner = null, claimed_at = null, attempts = attempts - 1
from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner = u.owner and e.fence = u.fence

-- name: take_effect
delete from holdfast.effects where instance = ?::uuid and number = ?::int4 and owner = ?::uuid and fence = ?::int4

-- name: wake_effects
update holdfast.effects set parked_until = null where parked_until <= coalesce(?::timestamptz, clock_timestamp()) returning handler

-- name: next_parked
select min(parked_until) from holdfast.effects where parked_until is not null

-- name: waiting_effects
select instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested
from holdfast.effects
where handler = ?::text and owner is null and parked_until is null
    and created_at <= coalesce(?::timestamptz, clock_timestamp()) - ?::interval
order by rank, instance, number limit ?::int8

-- name: claim_timers
update holdfast.timers t set claimed_until = n.at + ?::interval from (select coalesce(?::timestamptz, clock_timestamp()) as at) as n
where t.ctid = any (array(
    select d.ctid from holdfast.timers d
    where d.due_at <= coalesce(?::timestamptz, clock_timestamp())
        and (d.claimed_until is null or d.claimed_until <= coalesce(?::timestamptz, clock_timestamp()))
        and not exists (select 1 from holdfast.meta where name = 'maintenance')
        and d.definition = any (coalesce(?::text[], array[d.definition]))
    order by d.due_at limit ?::int8 for update skip locked
))
returning t.instance, t.key, t.number, t.tenant, t.definition, t.type, t.version, t.data,
    greatest(t.due_at, '0001-01-01 00:00:00+00'), t.attempts, t.error

-- name: next_timer
-- The calendar of Postgres goes further than that of Python.
select least(n.at, '9999-12-31 00:00:00+00') from (
    select min(due_at) as at from holdfast.timers where due_at > coalesce(?::timestamptz, clock_timestamp())
) as n where n.at is not null

-- name: retry_timer
update holdfast.timers set due_at = ?::timestamptz, attempts = attempts + 1, error = ?::text, claimed_until = null
where instance = ?::uuid and key = ?::text and number = ?::int4

-- name: take_timer
delete from holdfast.timers where instance = ?::uuid and key = ?::text and number = ?::int4

-- name: claim_heads
-- Messages of one target are taken in order: only the first one of a target can be locked, and it stands for those behind it.
select h.tenant, h.target, h.id from holdfast.inbox h
where (h.due_at is null or h.due_at <= coalesce(?::timestamptz, clock_timestamp()))
    and (h.claimed_until is null or h.claimed_until <= coalesce(?::timestamptz, clock_timestamp()))
    and not exists (select 1 from holdfast.inbox f where f.tenant = h.tenant and f.target = h.target and f.id < h.id)
    and not exists (select 1 from holdfast.meta where name = 'maintenance')
    and h.definition = any (coalesce(?::text[], array[h.definition]))
order by h.id limit ?::int8 for update skip locked

-- name: claim_behind
update holdfast.inbox i set claimed_until = coalesce(?::timestamptz, clock_timestamp()) + ?::interval
where i.id = any (array(
    select f.id from unnest(?::text[], ?::text[]) as u (tenant, target)
    cross join lateral (select id from holdfast.inbox where tenant = u.tenant and target = u.target offset 0) as f
    order by f.id limit ?::int8
))
returning i.id, i.tenant, i.definition, i.key, i.instance, i.type, i.version, i.data, i.command_id, i.actor, i.comment,
    i.definition_version, i.parent, i.attempts, i.error

-- name: retry_message
update holdfast.inbox set due_at = ?::timestamptz, attempts = attempts + 1, error = ?::text, claimed_until = null where id = ?::int8

-- name: free_target
update holdfast.inbox i set claimed_until = null from holdfast.inbox h
where h.id = ?::int8 and i.tenant = any (array[h.tenant]) and i.target = h.target

-- name: take_message
delete from holdfast.inbox where id = ?::int8

-- name: inbox_depth
select count(*) from holdfast.inbox

-- name: next_message
select min(due_at) from holdfast.inbox where due_at > coalesce(?::timestamptz, clock_timestamp())
