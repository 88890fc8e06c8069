-- Many instances together, each looked up by its id with a lateral query and an offset (see `loading.sql`).

-- name: histories
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause, e.on_behalf_of,
    e.trace
from unnest($2::uuid[]) as u (instance)
cross join lateral (select * from standfast.events where instance = u.instance and tenant = $1::text offset 0) as e
order by e.instance, e.sequence

-- name: snapshots
select s.instance, s.version, s.state_version, s.data, s.fingerprint from unnest($2::uuid[]) as u (instance)
cross join lateral (select * from standfast.snapshots where instance = u.instance and tenant = $1::text offset 0) as s

-- name: effects
select e.instance, e.number, e.tenant, e.definition, e.language, e.handler, e.type, e.version, e.data, e.options, e.priority, e.rank,
    e.parked_until, e.owner, e.fence, e.attempts, e.error, e.created_at, e.claimed_at, e.stop_requested, e.context
from unnest($2::uuid[]) as u (instance)
cross join lateral (select * from standfast.effects where instance = u.instance and tenant = $1::text offset 0) as e
order by e.instance, e.number

-- name: timers
select t.instance, t.key, t.number, t.tenant, t.definition, t.language, t.type, t.version, t.data, t.due_at, t.attempts, t.error, t.context
from unnest($2::uuid[]) as u (instance)
cross join lateral (select * from standfast.timers where instance = u.instance and tenant = $1::text offset 0) as t
order by t.instance, t.number
