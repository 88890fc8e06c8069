-- name: read
-- No running transaction can still write below the horizon, so nothing is ever skipped. Two transactions may share a position, so a
-- page never ends between equal ones.
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause
from holdfast.events
where position > ?::int8 and position < (?::int8 + pg_snapshot_xmin(pg_current_snapshot())::text::int8) << 20
order by position fetch first (?::int8) rows with ties

-- name: newest
select max(position) from holdfast.events

-- name: current
select pg_snapshot_xmax(pg_current_snapshot())::text::int8

-- name: checkpoint
select position from holdfast.projections where name = ?::text

-- name: enter
insert into holdfast.projections (name, position, updated_at, error) values (?::text, 0, ?::timestamptz, '') on conflict do nothing

-- name: hold
select position from holdfast.projections where name = ?::text for update

-- name: move
update holdfast.projections set position = ?::int8, updated_at = ?::timestamptz, error = '' where name = ?::text

-- name: fail
update holdfast.projections set error = ?::text, updated_at = ?::timestamptz where name = ?::text
