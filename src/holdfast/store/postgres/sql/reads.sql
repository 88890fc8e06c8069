-- name: as_tenant
-- Row-level security shows this transaction the rows of one tenant only.
select set_config('role', 'holdfast_tenant', true), set_config('holdfast.tenant', ?::text, true)

-- name: instances_of_parent
select i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
    i.updated_at, i.ended_at
from holdfast.instances i
where i.parent = $10::uuid and i.tenant = $1::text and ($11::text = '' or i.key = $11::text)
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.status = any ($3::text[]))
    and ($4::text = '' or i.definition_version = $4::text)
    and i.id >= $5::uuid and i.id < $6::uuid
    and ($7::timestamptz is null or i.created_at >= $7::timestamptz) and ($8::timestamptz is null or i.created_at < $8::timestamptz)
order by i.id desc limit $9::int8

-- name: instances_by_key
select i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
    i.updated_at, i.ended_at
from holdfast.instances i
where i.tenant = $1::text and i.key = $10::text
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.status = any ($3::text[]))
    and ($4::text = '' or i.definition_version = $4::text)
    and i.id >= $5::uuid and i.id < $6::uuid
    and ($7::timestamptz is null or i.created_at >= $7::timestamptz) and ($8::timestamptz is null or i.created_at < $8::timestamptz)
order by i.id desc limit $9::int8

-- name: instances_of_definition
-- Each status newest first, along an index, and then the newest of all; without a wish, from one status to the next along the index.
with recursive s (status) as (
    (
        select i.status from holdfast.instances i
        where i.tenant = $1::text and i.definition = $2::text and i.created_at > '-infinity' and $3::text[] = '{}'
        order by i.status limit 1
    )
    union all
    select (
        select i.status from holdfast.instances i
        where i.tenant = $1::text and i.definition = $2::text and i.created_at > '-infinity' and i.status > s.status
        order by i.status limit 1
    ) from s where s.status is not null
)
select n.* from (select status from s where status is not null union select unnest($3::text[])) as w
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
        i.updated_at, i.ended_at
    from holdfast.instances i
    where i.tenant = $1::text and i.definition = $2::text and i.status = w.status and i.created_at > '-infinity'
        and ($4::text = '' or i.definition_version = $4::text)
        and i.id >= $5::uuid and i.id < $6::uuid
        and ($7::timestamptz is null or i.created_at >= $7::timestamptz) and ($8::timestamptz is null or i.created_at < $8::timestamptz)
    order by i.id desc limit $9::int8
) as n
order by n.id desc limit $9::int8

-- name: instances_of_status
with recursive s (status) as (
    (
        select i.status from holdfast.instances i
        where i.tenant = $1::text and i.created_at < 'infinity' and $2::text[] = '{}'
        order by i.status limit 1
    )
    union all
    select (
        select i.status from holdfast.instances i
        where i.tenant = $1::text and i.created_at < 'infinity' and i.status > s.status
        order by i.status limit 1
    ) from s where s.status is not null
)
select n.* from (select status from s where status is not null union select unnest($2::text[])) as w
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
        i.updated_at, i.ended_at
    from holdfast.instances i
    where i.tenant = $1::text and i.status = w.status and i.created_at < 'infinity'
        and ($3::text = '' or i.definition_version = $3::text)
        and i.id >= $4::uuid and i.id < $5::uuid
        and ($6::timestamptz is null or i.created_at >= $6::timestamptz) and ($7::timestamptz is null or i.created_at < $7::timestamptz)
    order by i.id desc limit $8::int8
) as n
order by n.id desc limit $8::int8

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause
from holdfast.events where instance = ?::uuid and tenant = ?::text and sequence > ?::int4 order by sequence limit ?::int8

-- name: effects
select instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested
from holdfast.effects where instance = ?::uuid and tenant = ?::text order by number

-- name: timers
select instance, key, number, tenant, definition, type, version, data, due_at, attempts, error
from holdfast.timers where instance = ?::uuid and tenant = ?::text order by due_at, number

-- name: steps
select instance, number, node, token, visit, kind, status, compensates, retry_of, wait_kind, attempts, outcome, error, input, output,
    opened_at, moved_at
from holdfast.steps where instance = ?::uuid and tenant = ?::text order by number

-- name: tasks
select instance, number, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at
from holdfast.human_tasks where instance = ?::uuid and tenant = ?::text order by number

-- name: open_tasks
select instance, number, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at
from holdfast.human_tasks
where tenant = ?::text and closed_at is null and (opened_at, instance, number) > (?::timestamptz, ?::uuid, ?::int4)
order by opened_at, instance, number limit ?::int8

-- name: open_tasks_of_role
select instance, number, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at
from holdfast.human_tasks
where tenant = ?::text and role = ?::text and closed_at is null
    and (opened_at, instance, number) > (?::timestamptz, ?::uuid, ?::int4)
order by opened_at, instance, number limit ?::int8

-- name: headers
select i.id, i.tenant, i.definition, i.definition_version, i.key, i.status, i.reason, i.version, i.issued, i.parent, i.created_at,
    i.updated_at, i.ended_at
from holdfast.instances i where i.id = any ($2::uuid[]) and i.tenant = $1::text

-- name: begun
select u.id from unnest($2::uuid[]) as u (id)
where exists (
    select 1 from holdfast.steps s
    where s.instance = u.id and s.tenant = $1::text and (s.status <> 'pending' or s.attempts > 0 or s.wait_kind <> '')
) or exists (select 1 from holdfast.effects e where e.instance = u.id and e.tenant = $1::text and e.owner is not null)

-- name: subscriptions
select instance, number, signal, correlation, expires_at, opened_at
from holdfast.subscriptions where instance = ?::uuid and tenant = ?::text order by number

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, type, version, data, options, priority, attempts, fence, reason, error,
    actor, definition_version, parent, command_id, comment, created_at
from holdfast.dead_letters
where tenant = $1::text and id > $2::int8 and ($3::text = '' or definition = $3::text) and ($4::text is null or source = $4::text)
order by id limit $5::int8

-- name: dead_letters_of_instance
-- An instance has few; looked for first, so that the planner does not walk through those of all others in the order of their ids.
with mine as materialized (select * from holdfast.dead_letters where instance = $6::uuid)
select id, tenant, source, instance, definition, key, number, name, type, version, data, options, priority, attempts, fence, reason, error,
    actor, definition_version, parent, command_id, comment, created_at
from mine
where tenant = $1::text and id > $2::int8 and ($3::text = '' or definition = $3::text) and ($4::text is null or source = $4::text)
order by id limit $5::int8

-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, type, version, data, options, priority, attempts, fence, reason, error,
    actor, definition_version, parent, command_id, comment, created_at
from holdfast.dead_letters where id = ?::int8 and tenant = ?::text

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from holdfast.observations
where tenant = $1::text and ($2::text = '' or definition = $2::text) and ($3::uuid is null or instance = $3::uuid)
order by id

-- name: transitions
select from_status, input, to_status, count(*) from holdfast.observations
where tenant = ?::text and definition = ?::text and not skipped
group by from_status, input, to_status order by from_status, input, to_status
