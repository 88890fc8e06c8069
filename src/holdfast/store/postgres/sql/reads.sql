-- name: as_tenant
-- Row-level security shows this transaction the rows of one tenant only.
select set_config('role', 'holdfast_tenant', true), set_config('holdfast.tenant', ?::text, true)

-- name: instances
select id, tenant, definition, definition_version, key, status, reason, version, issued, parent, created_at, updated_at, ended_at
from holdfast.instances
where tenant = $1::text and created_at > '-infinity'
    and ($2::text = '' or definition = $2::text)
    and ($3::text = '' or key = $3::text)
    and ($4::uuid is null or parent = $4::uuid)
    and ($5::text[] = '{}' or status = any ($5::text[]))
    and ($6::uuid is null or id < $6::uuid)
order by id desc limit $7::int8

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause
from holdfast.events where instance = ?::uuid and tenant = ?::text and sequence > ?::int4 order by sequence limit ?::int8

-- name: effects
select instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at
from holdfast.effects where instance = ?::uuid and tenant = ?::text order by number

-- name: timers
select instance, key, number, tenant, definition, type, version, data, due_at, attempts, error
from holdfast.timers where instance = ?::uuid and tenant = ?::text order by due_at, number

-- name: steps
select instance, number, node, token, visit, kind, status, compensates, wait_kind, attempts, outcome, error, input, output,
    opened_at, moved_at
from holdfast.steps where instance = ?::uuid and tenant = ?::text order by number

-- name: tasks
select instance, number, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at
from holdfast.human_tasks where instance = ?::uuid and tenant = ?::text order by number

-- name: subscriptions
select instance, number, signal, correlation, expires_at, opened_at
from holdfast.subscriptions where instance = ?::uuid and tenant = ?::text order by number

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, type, version, data, options, priority, attempts, fence, reason, error,
    actor, created_at
from holdfast.dead_letters
where tenant = $1::text and id > $2::int8 and ($3::uuid is null or instance = $3::uuid) order by id limit $4::int8

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from holdfast.observations
where tenant = $1::text and ($2::text = '' or definition = $2::text) and ($3::uuid is null or instance = $3::uuid)
order by id

-- name: transitions
select from_status, input, to_status, count(*) from holdfast.observations
where tenant = ?::text and definition = ?::text and not skipped
group by from_status, input, to_status order by from_status, input, to_status
