-- name: expired
-- Along the index of all deadlines, the earliest first.
select
    id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances
where kind = 'process' and status = 'running' and deadline_at is not null and deadline_at < :before
    and (:after is null or (deadline_at, id) > (:after, :after_id))
    and (:partition is null or coalesce(partition, '') = :partition)
order by deadline_at, id limit :limit;

-- name: expired_of_tenant
select
    id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances
where kind = 'process' and status = 'running' and deadline_at is not null and tenant = :tenant and deadline_at < :before
    and (:after is null or (deadline_at, id) > (:after, :after_id))
    and (:partition is null or coalesce(partition, '') = :partition)
order by deadline_at, id limit :limit;
