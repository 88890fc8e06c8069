-- name: record
-- Writes nothing for an instance that does not exist or belongs to another tenant.
insert into standfast.resume_requests (
    instance, id, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, outcome, requested_at, error_message,
    on_behalf_of, context, about
)
select i.id, $1::uuid, i.tenant, $4::text, $5::text, $6::bytea, $7::text, $8::text, $9::text, $10::timestamptz, $11::text,
    $12::text, $13::bytea, $14::text
from standfast.instances i where i.id = $2::uuid and i.tenant = $3::text

-- name: refuse
update standfast.resume_requests set outcome = 'refused', error_message = ?::text
where instance = ?::uuid and id = ?::uuid and outcome = 'open'

-- name: open_requests
select id, instance, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, requested_at, outcome, executed_at,
    error_message, on_behalf_of, context, about
from standfast.resume_requests where outcome = 'open' order by requested_at, instance limit ?::int8

-- name: decided
select tenant, id from standfast.instances where reason = 'approved' and paused_at is not null order by paused_at limit ?::int8

-- name: late
-- A pause of their definition, their tenant or everything holds them, whatever has expired.
select i.tenant, i.id from standfast.instances i
where i.reason = 'requested' and i.paused_at is not null and i.paused_at < ?::timestamptz and i.kind = ?::text
    and not exists (
        select 1 from standfast.pauses p
        where p.ended_at is null and p.step = '' and p.tenant in (i.tenant, '*') and p.definition in (i.definition, '')
            and p.version in (i.definition_version, '')
    )
order by i.paused_at limit ?::int8

-- name: paused
select i.id from standfast.instances i
where i.tenant = $1::text and ($12::text = '' or i.partition = $12::text) and i.paused_at is not null
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.kind = any ($3::text[]))
    and ($4::timestamptz is null or i.paused_at >= $4::timestamptz) and ($5::timestamptz is null or i.paused_at < $5::timestamptz)
    and ($6::timestamptz is null or (i.paused_at, i.id) < ($6::timestamptz, $7::uuid))
    and (not $8::bool or i.reason = 'approved' or (i.reason = 'requested' and i.kind = $10::text and i.paused_at < $11::timestamptz) or exists (
        select 1 from standfast.resume_requests r where r.instance = i.id and r.tenant = $1::text and r.outcome = 'open'
    ))
order by i.paused_at desc, i.id desc limit $9::int8

-- name: paused_for
select i.id from standfast.instances i
where i.tenant = $1::text and ($12::text = '' or i.partition = $12::text) and i.reason = $13::text and i.paused_at is not null
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.kind = any ($3::text[]))
    and ($4::timestamptz is null or i.paused_at >= $4::timestamptz) and ($5::timestamptz is null or i.paused_at < $5::timestamptz)
    and ($6::timestamptz is null or (i.paused_at, i.id) < ($6::timestamptz, $7::uuid))
    and (not $8::bool or i.reason = 'approved' or (i.reason = 'requested' and i.kind = $10::text and i.paused_at < $11::timestamptz) or exists (
        select 1 from standfast.resume_requests r where r.instance = i.id and r.tenant = $1::text and r.outcome = 'open'
    ))
order by i.paused_at desc, i.id desc limit $9::int8

-- name: paused_before
select i.id from standfast.instances i
where i.tenant = $1::text and ($12::text = '' or i.partition = $12::text) and i.next_step = $13::text and ($14::text = '' or i.reason = $14::text)
    and i.paused_at is not null
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.kind = any ($3::text[]))
    and ($4::timestamptz is null or i.paused_at >= $4::timestamptz) and ($5::timestamptz is null or i.paused_at < $5::timestamptz)
    and ($6::timestamptz is null or (i.paused_at, i.id) < ($6::timestamptz, $7::uuid))
    and (not $8::bool or i.reason = 'approved' or (i.reason = 'requested' and i.kind = $10::text and i.paused_at < $11::timestamptz) or exists (
        select 1 from standfast.resume_requests r where r.instance = i.id and r.tenant = $1::text and r.outcome = 'open'
    ))
order by i.paused_at desc, i.id desc limit $9::int8

-- name: resume_requests
select id, instance, tenant, triggered_by, triggered_by_id, trigger_data, reason, requested_by, requested_at, outcome, executed_at,
    error_message, on_behalf_of, context, about
from standfast.resume_requests where instance = $1::uuid and tenant = $2::text
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = $1::uuid and p.partition = $3::text))
order by requested_at, id
