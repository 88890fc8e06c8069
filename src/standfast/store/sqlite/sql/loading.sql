-- name: instance_by_id
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances where id = :instance and tenant = :tenant and (:partition = '' or partition = :partition);

-- name: instance_by_key
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances where tenant = ? and definition = ? and key = ? and coalesce(partition, '') = ?;

-- name: snapshot
select version, state_version, data, fingerprint from snapshots where instance = ?;

-- name: events_after
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace
from events where instance = ? and sequence > ? order by sequence;

-- name: pending_timers
select key, number, due_at, frozen_at from timers where instance = ?;
