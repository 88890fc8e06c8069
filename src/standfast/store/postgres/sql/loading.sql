-- Given rows are looked up one by one: the planner does not move a lateral query with an offset. Otherwise it could
-- scan a whole table and look up every row among the given ones, which it prefers while it believes that the table is
-- small.

-- name: headers
-- The instances with their snapshots and timers, which are null if there are none. Some are named by id, others by
-- definition and key.
select
    i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text, i.commits,
    i.next_step, s.version, s.state_version, s.data, s.fingerprint, t.keys, t.numbers, t.dues, t.frozen
from (
    select n.* from unnest(?::text[], ?::uuid[], ?::text[]) as u (tenant, id, partition)
    cross join lateral (
        select * from standfast.instances i
        where i.id = u.id and i.tenant = u.tenant and (u.partition = '' or i.partition = u.partition) offset 0
    ) as n
    union all
    select n.* from unnest(?::text[], ?::text[], ?::text[], ?::text[]) as u (tenant, definition, key, partition)
    cross join lateral (
        select * from standfast.instances i
        where i.tenant = u.tenant and i.definition = u.definition and i.key = u.key
            and case when i.partition is null then '' else i.partition end = u.partition
        offset 0
    ) as n
) as i left join lateral (select * from standfast.snapshots where instance = i.id offset 0) as s on true
cross join lateral (
    select array_agg(key) as keys, array_agg(number) as numbers,
        array_agg(least(greatest(due_at, '0001-01-01 00:00:00+00'), '9999-12-31 23:59:59.999999+00')) as dues, array_agg(frozen_at) as frozen
    from standfast.timers where instance = i.id offset 0
) as t

-- name: events
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause, e.on_behalf_of,
    e.trace
from unnest(?::uuid[], ?::int4[], ?::int4[]) as u (instance, after, upto)
cross join lateral (
    select * from standfast.events where instance = u.instance and sequence > u.after and sequence <= u.upto offset 0
) as e
order by e.instance, e.sequence

-- name: lock
-- Rows are always locked in the order of their ids, which avoids deadlocks between commits.
select i.id from standfast.instances i where i.id = any (array(
    select n.id from unnest(?::text[], ?::uuid[], ?::text[]) as u (tenant, id, partition)
    cross join lateral (
        select i.id from standfast.instances i
        where i.id = u.id and i.tenant = u.tenant and (u.partition = '' or i.partition = u.partition) offset 0
    ) as n
    union
    select n.id from unnest(?::text[], ?::text[], ?::text[], ?::text[]) as u (tenant, definition, key, partition)
    cross join lateral (
        select i.id from standfast.instances i
        where i.tenant = u.tenant and i.definition = u.definition and i.key = u.key
            and case when i.partition is null then '' else i.partition end = u.partition
        offset 0
    ) as n
)) order by i.id for update

-- name: disown
update standfast.effects e set owner = null, claimed_at = null, fence = fence + 1, attempts = attempts - 1
where e.owner = ?::uuid and not exists (
    select 1 from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
    where u.instance = e.instance and u.number = e.number and u.fence = e.fence
)

-- name: held_effects
select u.* from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
cross join lateral (
    select 1 from standfast.effects where instance = u.instance and number = u.number and owner = u.owner and fence = u.fence offset 0
) as e

-- name: set_timers
select u.* from unnest(?::uuid[], ?::text[], ?::int4[]) as u (instance, key, number)
cross join lateral (select 1 from standfast.timers where instance = u.instance and key = u.key and number = u.number offset 0) as t

-- name: kept_messages
select id from standfast.inbox where id = any (?::int8[])

-- name: kept_letters
select id from standfast.dead_letters where id = any (?::int8[])

-- name: receipts
select r.tenant, r.scope, r.key, r.instance, r.version, r.digest from unnest(?::text[], ?::text[], ?::text[]) as u (tenant, scope, key)
cross join lateral (select * from standfast.receipts where tenant = u.tenant and scope = u.scope and key = u.key offset 0) as r

-- name: newest_position
select max(e.position) from unnest(?::uuid[], ?::int4[]) as u (instance, version)
cross join lateral (select position from standfast.events where instance = u.instance and sequence = u.version offset 0) as e

-- name: causes
select e.cause from unnest(?::uuid[], ?::text[]) as u (instance, cause)
cross join lateral (select cause from standfast.events where instance = u.instance and cause = u.cause offset 0) as e
