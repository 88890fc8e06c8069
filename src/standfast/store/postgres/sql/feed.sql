-- name: read
-- No running transaction can still write below the horizon, so no event is skipped. Two transactions may share a
-- position, so a page never ends between equal positions.
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause,
    i.definition, i.definition_version, i.key, e.on_behalf_of, e.trace
from (
    select * from standfast.events
    where position > ?::int8 and position < (?::int8 + pg_snapshot_xmin(pg_current_snapshot())::text::int8) << 20
    order by position fetch first (?::int8) rows with ties
) as e
left join lateral (
    select definition, definition_version, coalesce(key, '') as key from standfast.instances where id = e.instance offset 0
) as i on true

-- name: headlines
-- The same order and the same horizon.
select e.position, e.tenant, e.instance, e.sequence, e.type, coalesce(i.definition, '')
from (
    select position, tenant, instance, sequence, type from standfast.events
    where position > ?::int8 and position < (?::int8 + pg_snapshot_xmin(pg_current_snapshot())::text::int8) << 20
    order by position fetch first (?::int8) rows with ties
) as e
left join lateral (select definition from standfast.instances where id = e.instance offset 0) as i on true

-- name: horizon
-- The position below which no running transaction can still write.
select (?::int8 + pg_snapshot_xmin(pg_current_snapshot())::text::int8) << 20

-- name: newest
select max(position) from standfast.events

-- name: current
select pg_snapshot_xmax(pg_current_snapshot())::text::int8

-- name: checkpoint
select position from standfast.projections where name = ?::text

-- name: enter
insert into standfast.projections (name, position, error) values (?::text, 0, '') on conflict do nothing

-- name: drop
delete from standfast.projections where name = ?::text

-- name: hold
select position from standfast.projections where name = ?::text for update

-- name: move
update standfast.projections set position = ?::int8, updated_at = ?::timestamptz, error = '', failed_at = null where name = ?::text

-- name: fail
-- A repeated failure keeps the time of the first one.
update standfast.projections set error = u.error, updated_at = u.at, failed_at = coalesce(failed_at, u.at)
from (select ?::text as error, ?::timestamptz as at) as u where name = ?::text

-- name: projections
select n.name, coalesce(p.position, 0), (
    select count(*) from (select 1 from standfast.events e where e.position > coalesce(p.position, 0) limit ?::int8) as u
), p.updated_at, coalesce(p.error, ''), p.failed_at
from (select name from standfast.projections union select unnest(?::text[])) as n (name)
left join standfast.projections p on p.name = n.name order by n.name
