-- name: expired
-- Along the index of all deadlines, the earliest first.
select
    i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances i
where i.kind = 'process' and i.status = 'running' and i.deadline_at is not null and i.deadline_at < $1::timestamptz
    and ($2::timestamptz is null or (i.deadline_at, i.id) > ($2::timestamptz, $3::uuid))
    and ($5::text is null or coalesce(i.partition, '') = $5::text)
order by i.deadline_at, i.id limit $4::int8

-- name: expired_of_tenant
select
    i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances i
where i.kind = 'process' and i.status = 'running' and i.deadline_at is not null and i.tenant = $6::text and i.deadline_at < $1::timestamptz
    and ($2::timestamptz is null or (i.deadline_at, i.id) > ($2::timestamptz, $3::uuid))
    and ($5::text is null or coalesce(i.partition, '') = $5::text)
order by i.deadline_at, i.id limit $4::int8
