-- name: read
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause
from events where position > ? order by position limit ?;

-- name: checkpoint
select position from projections where name = ?;

-- name: move
insert into projections (name, position, updated_at, error) values (?, ?, ?, '')
on conflict (name) do update set position = excluded.position, updated_at = excluded.updated_at, error = '';

-- name: fail
insert into projections (name, position, updated_at, error) values (?, 0, ?, ?)
on conflict (name) do update set updated_at = excluded.updated_at, error = excluded.error;
