-- name: headers
-- The wanted instances with their snapshots and the keys of their timers: some named by id, some by definition and key.
select
    i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
    i.updated_at, i.ended_at, s.version, s.state_version, s.data,
    array(select t.key from holdfast.timers t where t.instance = i.id order by t.key),
    array(select t.number from holdfast.timers t where t.instance = i.id order by t.key)
from (
    select n.* from unnest(?::text[], ?::uuid[]) as u (tenant, id) join holdfast.instances n on n.id = u.id and n.tenant = u.tenant
    union all
    select n.* from unnest(?::text[], ?::text[], ?::text[]) as u (tenant, definition, key)
    join holdfast.instances n on n.tenant = u.tenant and n.definition = u.definition and n.key = u.key
) as i left join holdfast.snapshots s on s.instance = i.id

-- name: events
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause
from unnest(?::uuid[], ?::int4[], ?::int4[]) as u (instance, after, upto)
join holdfast.events e on e.instance = u.instance and e.sequence > u.after and e.sequence <= u.upto
order by e.instance, e.sequence

-- name: lock
-- Rows are always locked in the order of their ids, so that two commits never wait for one another in a circle.
select i.id from holdfast.instances i where i.id = any (array(
    select n.id from unnest(?::text[], ?::uuid[]) as u (tenant, id) join holdfast.instances n on n.id = u.id and n.tenant = u.tenant
    union
    select n.id from unnest(?::text[], ?::text[], ?::text[]) as u (tenant, definition, key)
    join holdfast.instances n on n.tenant = u.tenant and n.definition = u.definition and n.key = u.key
)) order by i.id for update

-- name: disown
update holdfast.effects e set owner = null, claimed_at = null, fence = fence + 1, attempts = attempts - 1
where e.owner = ?::uuid and not exists (
    select 1 from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
    where u.instance = e.instance and u.number = e.number and u.fence = e.fence
)

-- name: held_effects
select e.instance, e.number, e.owner, e.fence from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
join holdfast.effects e on e.instance = u.instance and e.number = u.number and e.owner = u.owner and e.fence = u.fence

-- name: set_timers
select t.instance, t.key, t.number from unnest(?::uuid[], ?::text[], ?::int4[]) as u (instance, key, number)
join holdfast.timers t on t.instance = u.instance and t.key = u.key and t.number = u.number

-- name: kept_messages
select id from holdfast.inbox where id = any (?::int8[])

-- name: receipts
select r.tenant, r.scope, r.key, r.instance, r.version from unnest(?::text[], ?::text[], ?::text[]) as u (tenant, scope, key)
join holdfast.receipts r on r.tenant = u.tenant and r.scope = u.scope and r.key = u.key

-- name: newest_position
select max(e.position) from unnest(?::uuid[], ?::int4[]) as u (instance, version)
join holdfast.events e on e.instance = u.instance and e.sequence = u.version

-- name: causes
select e.cause from unnest(?::uuid[], ?::text[]) as u (instance, cause)
join holdfast.events e on e.instance = u.instance and e.cause = u.cause
