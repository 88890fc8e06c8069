-- name: as_tenant
-- Row-level security limits this transaction to the rows of one tenant.
select set_config('role', 'standfast_tenant', true), set_config('standfast.tenant', %s, true)

-- name: instances_of_parent
-- Steps from one status to the next along the index, each newest first, then the newest of all.
with recursive s (status) as (
    select ''
    union all
    select f.status from s cross join lateral (
        select i.status from standfast.instances i where i.parent = $12::uuid and i.tenant = $1::text and i.status > s.status
        order by i.status limit 1
    ) as f
)
select n.* from s
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.parent = $12::uuid and i.tenant = $1::text and i.status = s.status
        and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid
        and ($14::text is null or coalesce(i.partition, '') = $14::text) and ($13::text = '' or i.attributes @> $13::text::jsonb)
        and ($2::text = '' or i.definition = $2::text) and ($4::text[] = '{}' or i.kind = any ($4::text[]))
        and ($5::text = '' or i.definition_version = $5::text)
        and (
            $6::bool is null
            or (i.begun or exists (select 1 from standfast.effects e where e.instance = i.id and e.tenant = $1::text and e.owner is not null))
                = $6::bool
        )
        and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    order by greatest(i.id) desc limit $11::int8
) as n
where $3::text[] = '{}' or s.status = any ($3::text[])
order by n.id desc limit $11::int8

-- name: instances_by_key
select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances i
where i.tenant = $1::text and i.key = $12::text and ($14::text is null or coalesce(i.partition, '') = $14::text)
    and ($15::uuid is null or i.parent = $15::uuid)
    and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.status = any ($3::text[]))
    and ($4::text[] = '{}' or i.kind = any ($4::text[])) and ($5::text = '' or i.definition_version = $5::text)
    and (
        $6::bool is null
        or (i.begun or exists (select 1 from standfast.effects e where e.instance = i.id and e.tenant = $1::text and e.owner is not null))
            = $6::bool
    )
    and i.id >= $7::uuid and i.id < $8::uuid
    and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    and ($13::text = '' or i.attributes @> $13::text::jsonb)
order by i.id desc limit $11::int8

-- name: instances_by_reason
-- Instances that ended for one of these reasons, newest first.
select n.* from unnest($12::text[]) as r (reason)
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.tenant = $1::text and i.reason = r.reason and i.ended_at is not null and i.reason <> ''
        and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid
        and ($16::text is null or coalesce(i.partition, '') = $16::text) and ($13::uuid is null or i.parent = $13::uuid)
        and ($14::text = '' or i.key = $14::text) and ($15::text = '' or i.attributes @> $15::text::jsonb)
        and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.status = any ($3::text[]))
        and ($4::text[] = '{}' or i.kind = any ($4::text[])) and ($5::text = '' or i.definition_version = $5::text)
        and (
            $6::bool is null
            or (i.begun or exists (select 1 from standfast.effects e where e.instance = i.id and e.tenant = $1::text and e.owner is not null))
                = $6::bool
        )
        and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    order by greatest(i.id) desc limit $11::int8
) as n
order by n.id desc limit $11::int8

-- name: instances_by_attribute
-- Matches are found by an index first and then sorted, because they are expected to be few.
select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances_having($12::text::jsonb) as h (id)
cross join lateral (select * from standfast.instances n where n.id = h.id and n.tenant = $1::text offset 0) as i
where ($13::text is null or coalesce(i.partition, '') = $13::text) and ($2::text = '' or i.definition = $2::text) and ($3::text[] = '{}' or i.status = any ($3::text[]))
    and ($4::text[] = '{}' or i.kind = any ($4::text[])) and ($5::text = '' or i.definition_version = $5::text)
    and (
        $6::bool is null
        or (i.begun or exists (select 1 from standfast.effects e where e.instance = i.id and e.tenant = $1::text and e.owner is not null))
            = $6::bool
    )
    and i.id >= $7::uuid and i.id < $8::uuid
    and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
order by i.id desc limit $11::int8

-- name: instances_of_definition
-- Steps from one version and status to the next along the index. For each it reads the newest begun and the newest
-- other instance, then a page of those that may be on the page, then the newest of all. Only the indexes of lists
-- contain `greatest(id)`, which is the id. Otherwise statistics may lead the planner along the ids, through all
-- instances.
with recursive s (definition_version, status) as (
    (
        select i.definition_version, i.status from standfast.instances i
        where i.tenant = $1::text and i.definition = $2::text and i.created_at > '-infinity' and i.definition_version >= $5::text
        order by i.definition_version, i.status limit 1
    )
    union all
    select f.* from s cross join lateral (
        select i.definition_version, i.status from standfast.instances i
        where i.tenant = $1::text and i.definition = $2::text and i.created_at > '-infinity' and (i.definition_version, i.status) > (s.definition_version, s.status)
        order by i.definition_version, i.status limit 1
    ) as f
    where $5::text = '' or f.definition_version = $5::text
),
g as materialized (
    select s.definition_version, s.status, b.begun, (
        select i.id from standfast.instances i
        where i.tenant = $1::text and i.definition = $2::text and i.definition_version = s.definition_version and i.status = s.status and i.begun = b.begun
            and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at > '-infinity'
            and ($12::text is null or coalesce(i.partition, '') = $12::text)
            and ($4::text[] = '{}' or i.kind = any ($4::text[]))
            and ($6::bool is null or i.begun or not exists (
                select 1 from standfast.effects e
                where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
            ))
            and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
        order by greatest(i.id) desc limit 1
    ) as newest
    from s cross join (values (true), (false)) as b (begun)
    where ($5::text = '' or s.definition_version = $5::text) and ($3::text[] = '{}' or s.status = any ($3::text[])) and ($6::bool is null or b.begun = $6::bool)
)
select n.* from (select * from g where newest is not null order by newest desc limit $11::int8) as g
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.tenant = $1::text and i.definition = $2::text and i.definition_version = g.definition_version and i.status = g.status and i.begun = g.begun
        and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at > '-infinity'
        and ($12::text is null or coalesce(i.partition, '') = $12::text)
        and ($4::text[] = '{}' or i.kind = any ($4::text[]))
        and ($6::bool is null or i.begun or not exists (
            select 1 from standfast.effects e
            where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
        ))
        and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    order by greatest(i.id) desc limit $11::int8
) as n
order by n.id desc limit $11::int8

-- name: instances_of_status
-- The same, stepping from one kind and status to the next.
with recursive s (kind, status) as (
    (
        select i.kind, i.status from standfast.instances i
        where i.tenant = $1::text and i.created_at < 'infinity' and $2::text = ''
        order by i.kind, i.status limit 1
    )
    union all
    select f.* from s cross join lateral (
        select i.kind, i.status from standfast.instances i
        where i.tenant = $1::text and i.created_at < 'infinity' and (i.kind, i.status) > (s.kind, s.status)
        order by i.kind, i.status limit 1
    ) as f
),
g as materialized (
    select s.kind, s.status, b.begun, (
        select i.id from standfast.instances i
        where i.tenant = $1::text and i.kind = s.kind and i.status = s.status and i.begun = b.begun
            and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at < 'infinity'
            and ($12::text is null or coalesce(i.partition, '') = $12::text)
            and ($6::bool is null or i.begun or not exists (
                select 1 from standfast.effects e
                where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
            ))
            and ($5::text = '' or i.definition_version = $5::text)
            and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
        order by greatest(i.id) desc limit 1
    ) as newest
    from s cross join (values (true), (false)) as b (begun)
    where ($4::text[] = '{}' or s.kind = any ($4::text[])) and ($3::text[] = '{}' or s.status = any ($3::text[])) and ($6::bool is null or b.begun = $6::bool)
)
select n.* from (select * from g where newest is not null order by newest desc limit $11::int8) as g
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.tenant = $1::text and i.kind = g.kind and i.status = g.status and i.begun = g.begun
        and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at < 'infinity'
        and ($12::text is null or coalesce(i.partition, '') = $12::text)
        and ($6::bool is null or i.begun or not exists (
            select 1 from standfast.effects e
            where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
        ))
        and ($5::text = '' or i.definition_version = $5::text)
        and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    order by greatest(i.id) desc limit $11::int8
) as n
order by n.id desc limit $11::int8

-- name: instances_of_partition
-- The same in one partition of the tenant, stepping from one kind, definition and status to the next.
with recursive s (kind, definition, status) as (
    (
        select i.kind, i.definition, i.status from standfast.instances i
        where i.tenant = $1::text and i.partition = $12::text and i.created_at <> 'infinity'
        order by i.kind, i.definition, i.status limit 1
    )
    union all
    select f.* from s cross join lateral (
        select i.kind, i.definition, i.status from standfast.instances i
        where i.tenant = $1::text and i.partition = $12::text and i.created_at <> 'infinity' and (i.kind, i.definition, i.status) > (s.kind, s.definition, s.status)
        order by i.kind, i.definition, i.status limit 1
    ) as f
),
g as materialized (
    select s.kind, s.definition, s.status, b.begun, (
        select i.id from standfast.instances i
        where i.tenant = $1::text and i.partition = $12::text and i.kind = s.kind and i.definition = s.definition and i.status = s.status and i.begun = b.begun
            and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at <> 'infinity'
            and ($6::bool is null or i.begun or not exists (
                select 1 from standfast.effects e
                where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
            ))
            and ($5::text = '' or i.definition_version = $5::text)
            and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
        order by greatest(i.id) desc limit 1
    ) as newest
    from s cross join (values (true), (false)) as b (begun)
    where ($2::text = '' or s.definition = $2::text) and ($4::text[] = '{}' or s.kind = any ($4::text[])) and ($3::text[] = '{}' or s.status = any ($3::text[])) and ($6::bool is null or b.begun = $6::bool)
)
select n.* from (select * from g where newest is not null order by newest desc limit $11::int8) as g
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.tenant = $1::text and i.partition = $12::text and i.kind = g.kind and i.definition = g.definition and i.status = g.status and i.begun = g.begun
        and greatest(i.id) >= $7::uuid and greatest(i.id) < $8::uuid and i.created_at <> 'infinity'
        and ($6::bool is null or i.begun or not exists (
            select 1 from standfast.effects e
            where e.instance = i.id and e.tenant = $1::text and e.owner is not null and e.fence > 0
        ))
        and ($5::text = '' or i.definition_version = $5::text)
        and ($9::timestamptz is null or i.created_at >= $9::timestamptz) and ($10::timestamptz is null or i.created_at < $10::timestamptz)
    order by greatest(i.id) desc limit $11::int8
) as n
order by n.id desc limit $11::int8

-- name: instances_in_hand
-- Instances that have not begun although a worker has claimed one of their effects. Read from the claimed effects,
-- which are few.
select n.* from (
    select distinct e.instance from standfast.effects e where e.tenant = $1::text and e.owner is not null and e.fence > 0 offset 0
) as h
cross join lateral (
    select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
        i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
    from standfast.instances i
    where i.id = h.instance and i.tenant = $1::text and ($11::text is null or coalesce(i.partition, '') = $11::text) and not i.begun and ($2::text = '' or i.definition = $2::text)
        and ($3::text[] = '{}' or i.status = any ($3::text[])) and ($4::text[] = '{}' or i.kind = any ($4::text[]))
        and ($5::text = '' or i.definition_version = $5::text)
        and i.id >= $6::uuid and i.id < $7::uuid
        and ($8::timestamptz is null or i.created_at >= $8::timestamptz) and ($9::timestamptz is null or i.created_at < $9::timestamptz)
    offset 0
) as n
order by n.id desc limit $10::int8

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace
from standfast.events where instance = $1::uuid and tenant = $2::text and sequence > $4::int4
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = $1::uuid and p.partition = $3::text))
order by sequence limit $5::int8

-- name: effects
select instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context
from standfast.effects where instance = $1::uuid and tenant = $2::text
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = $1::uuid and p.partition = $3::text))
order by number

-- name: timers
select instance, key, number, tenant, definition, language, type, version, data, due_at, attempts, error, context
from standfast.timers where instance = $1::uuid and tenant = $2::text
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = $1::uuid and p.partition = $3::text))
order by due_at, number

-- name: subscribers
select instance, number, place, definition from standfast.subscriptions
where tenant = $1::text and kind = 'event' and signal = $2::text and correlation = $3::text
    and (instance, number, place) > ($4::uuid, $5::int4, $6::int4) and ($8::text = '' or partition = $8::text)
order by instance, number, place limit $7::int8

-- name: kept_for
-- The place repeats event and key, so that the planner uses their index and not the one by time, which it would read
-- whole.
select number, id, event, correlation, match_one, expires_at, data, instance, published_at
from standfast.published_events
where tenant = $1::text and event = $2::text and correlation = $3::text and expires_at > $4::timestamptz
    and (event, correlation, published_at, instance) > ($2::text, $3::text, $5::timestamptz, $6::uuid)
    and partition in ('', $8::text)
order by published_at, instance limit $7::int8

-- name: publications
select number, id, event, correlation, match_one, expires_at, data, instance, published_at
from standfast.published_events
where tenant = $1::text and ($7::text = '' or partition = $7::text) and ($2::text = '' or event = $2::text) and expires_at > $3::timestamptz
    and (published_at, instance) > ($4::timestamptz, $5::uuid)
order by published_at, instance limit $6::int8

-- name: headers
select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances i where i.id = any ($2::uuid[]) and i.tenant = $1::text and ($3::text = '' or i.partition = $3::text)

-- name: messages
select m.id, m.tenant, m.definition, m.key, m.instance, m.language, m.type, m.version, m.data, m.command_id, m.actor, m.comment,
    m.definition_version, m.parent, m.attempts, m.error, m.context, m.partition
from standfast.instances i join standfast.inbox m on m.tenant = $1::text
    and m.target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
where i.id = $2::uuid and i.tenant = $1::text and ($4::text = '' or i.partition = $4::text) order by m.id limit $3::int8

-- name: stuck
-- An open step for a person or a signal justifies waiting. One for a time or a child also needs what will wake it.
select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes::text as attributes, i.commits, i.next_step
from standfast.instances i
where i.tenant = $1::text and i.created_at < 'infinity' and i.kind = any ($2::text[]) and i.status = 'running' and i.id < $3::uuid
    and ($5::text = '' or i.partition = $5::text)
    and not exists (select 1 from standfast.effects e where e.instance = i.id)
    and not exists (select 1 from standfast.timers t where t.instance = i.id)
    and not exists (
        select 1 from standfast.steps s
        where s.instance = i.id and s.status in ('pending', 'running') and s.wait_kind not in ('', 'timer', 'child')
    )
    and not exists (select 1 from standfast.dead_letters d where d.instance = i.id)
    and not exists (select 1 from standfast.instances c where c.parent = i.id and c.ended_at is null)
    and not exists (
        select 1 from standfast.inbox m where m.tenant = i.tenant
            and m.target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (select 1 from standfast.inbox m where m.parent = i.id)
order by i.id desc limit $4::int8

-- name: in_hand
select u.id from unnest($2::uuid[]) as u (id)
where exists (select 1 from standfast.effects e where e.instance = u.id and e.tenant = $1::text and e.owner is not null)
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = u.id and p.partition = $3::text))

-- name: step_names
select number, node, compensates from standfast.steps
where instance = $2::uuid and tenant = $1::text and number = any ($3::int4[])
    and ($4::text = '' or exists (select 1 from standfast.instances p where p.id = $2::uuid and p.partition = $4::text))

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from standfast.dead_letters
where tenant = $1::text and ($7::text = '' or partition = $7::text) and id > $2::int8 and ($3::text = '' or definition = $3::text) and ($4::text is null or source = $4::text)
    and ($5::text = '' or key = $5::text or instance in (
        select i.id from standfast.instances i where i.tenant = $1::text and i.key = $5::text
    ))
order by id limit $6::int8

-- name: dead_letters_of_instance
-- An instance has few dead letters. They are found first, so that the planner does not scan those of all others by id.
with mine as materialized (select * from standfast.dead_letters where instance = $7::uuid)
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from mine
where tenant = $1::text and ($8::text = '' or partition = $8::text) and id > $2::int8 and ($3::text = '' or definition = $3::text) and ($4::text is null or source = $4::text)
    and ($5::text = '' or key = $5::text or instance in (
        select i.id from standfast.instances i where i.tenant = $1::text and i.key = $5::text
    ))
order by id limit $6::int8

-- name: count_letters
select count(*) from standfast.dead_letters
where tenant = $1::text and ($6::text = '' or partition = $6::text) and ($2::text = '' or definition = $2::text) and ($3::text is null or source = $3::text)
    and ($4::text = '' or key = $4::text or instance in (
        select i.id from standfast.instances i where i.tenant = $1::text and i.key = $4::text
    ))
    and ($5::uuid is null or instance = $5::uuid)

-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from standfast.dead_letters where id = $1::int8 and tenant = $2::text and ($3::text = '' or partition = $3::text)

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from standfast.observations o
where tenant = $1::text and ($2::text = '' or definition = $2::text) and ($3::uuid is null or instance = $3::uuid)
    and ($4::text = '' or exists (select 1 from standfast.instances p where p.id = o.instance and p.partition = $4::text))
order by id

-- name: transitions
select from_status, input, to_status, count(*) from standfast.observations o
where tenant = $1::text and definition = $2::text and not skipped
    and ($3::text = '' or exists (select 1 from standfast.instances p where p.id = o.instance and p.partition = $3::text))
group by from_status, input, to_status order by from_status, input, to_status
