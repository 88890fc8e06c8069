-- name: instances_of_parent
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes
from instances
where parent = :parent and tenant = :tenant and (:key = '' or key = :key) and (:definition = '' or definition = :definition)
    and (:definition_version = '' or definition_version = :definition_version)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:statuses is null or status in (select value from json_each(:statuses)))
    and (:begun is null or :begun = (begun or exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    )))
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
    and (:attributes is null or not exists (
        select 1 from json_each(:attributes) as w where not exists (
            select 1 from json_each(instances.attributes) as a
            where a.key = w.key and a.value = w.value and (a.type = w.type or (
                a.type in ('integer', 'real') and w.type in ('integer', 'real')
            ))
        )
    ))
order by id desc limit :limit;

-- name: instances_by_key
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes
from instances
where tenant = :tenant and key = :key and (:definition = '' or definition = :definition)
    and (:definition_version = '' or definition_version = :definition_version)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:statuses is null or status in (select value from json_each(:statuses)))
    and (:begun is null or :begun = (begun or exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    )))
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
    and (:attributes is null or not exists (
        select 1 from json_each(:attributes) as w where not exists (
            select 1 from json_each(instances.attributes) as a
            where a.key = w.key and a.value = w.value and (a.type = w.type or (
                a.type in ('integer', 'real') and w.type in ('integer', 'real')
            ))
        )
    ))
order by id desc limit :limit;

-- name: instances_by_attribute
-- Along the index of those that have any, newest first.
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes
from instances indexed by instances_by_attribute
where tenant = :tenant and attributes is not null and (:definition = '' or definition = :definition)
    and (:definition_version = '' or definition_version = :definition_version)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:statuses is null or status in (select value from json_each(:statuses)))
    and (:begun is null or :begun = (begun or exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    )))
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
    and (:attributes is null or not exists (
        select 1 from json_each(:attributes) as w where not exists (
            select 1 from json_each(instances.attributes) as a
            where a.key = w.key and a.value = w.value and (a.type = w.type or (
                a.type in ('integer', 'real') and w.type in ('integer', 'real')
            ))
        )
    ))
order by id desc limit :limit;

-- name: instances_of_definition
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes
from instances
where tenant = :tenant and definition = :definition and status = :status and begun = :is_begun
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:begun is null or begun or not exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    ))
    and (:definition_version = '' or definition_version = :definition_version)
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
order by id desc limit :limit;

-- name: instances_of_status
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes
from instances
where tenant = :tenant and kind = :kind and status = :status and begun = :is_begun
    and (:begun is null or begun or not exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    ))
    and (:definition_version = '' or definition_version = :definition_version)
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
order by id desc limit :limit;

-- name: instances_in_hand
-- Those that have not begun although a worker has an effect of theirs in hand: from what workers have, which is little.
select n.id, n.tenant, n.definition, n.definition_version, n.kind, n.key, n.status, n.reason, n.begun, n.version, n.issued, n.parent,
    n.created_at, n.updated_at, n.ended_at, n.partition, n.started_by, n.paused_at, n.deadline_at, n.attributes
from (
    select distinct instance from effects indexed by effects_owned where owner is not null and +tenant = :tenant
) as h cross join instances n on n.id = h.instance
where +n.tenant = :tenant and not n.begun and (:definition = '' or n.definition = :definition)
    and (:definition_version = '' or n.definition_version = :definition_version)
    and (:kinds is null or n.kind in (select value from json_each(:kinds)))
    and (:statuses is null or n.status in (select value from json_each(:statuses)))
    and n.id >= :first and n.id < :before and (:after is null or n.created_at >= :after)
    and (:until is null or n.created_at < :until)
order by n.id desc limit :limit;

-- name: kinds
-- From one kind to the next along the index.
with recursive k (kind) as (
    select * from (select kind from instances where tenant = :tenant order by kind limit 1)
    union all
    select (select kind from instances where tenant = :tenant and kind > k.kind order by kind limit 1) from k where k.kind is not null
)
select kind from k where kind is not null;

-- name: statuses
-- From one status to the next along the index.
with recursive s (status) as (
    select * from (select status from instances where tenant = :tenant and kind = :kind order by status limit 1)
    union all
    select (
        select status from instances where tenant = :tenant and kind = :kind and status > s.status order by status limit 1
    ) from s where s.status is not null
)
select status from s where status is not null;

-- name: statuses_of_definition
with recursive s (status) as (
    select * from (select status from instances where tenant = :tenant and definition = :definition order by status limit 1)
    union all
    select (
        select status from instances where tenant = :tenant and definition = :definition and status > s.status
        order by status limit 1
    ) from s where s.status is not null
)
select status from s where status is not null;

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace
from events where instance = ? and tenant = ? and sequence > ? order by sequence limit ?;

-- name: effects
select instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context
from effects where instance = ? and tenant = ? order by number;

-- name: timers
select instance, key, number, tenant, definition, language, type, version, data, due_at, attempts, error, context
from timers where instance = ? and tenant = ? order by due_at, number;

-- name: headers
-- The cross join and the plus keep the planner from reading every instance of the tenant instead of those that are named.
select n.id, n.tenant, n.definition, n.definition_version, n.kind, n.key, n.status, n.reason, n.begun, n.version, n.issued, n.parent,
    n.created_at, n.updated_at, n.ended_at, n.partition, n.started_by, n.paused_at, n.deadline_at, n.attributes
from json_each(:instances) as i cross join instances n on n.id = i.value where +n.tenant = :tenant;

-- name: in_hand
select i.value from json_each(:instances) as i
where exists (select 1 from effects where instance = i.value and tenant = :tenant and owner is not null);

-- name: step_names
select number, node, compensates from steps
where instance = :instance and tenant = :tenant and number in (select value from json_each(:numbers));

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context
from dead_letters
where tenant = :tenant and id > :after and (:definition = '' or definition = :definition) and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
order by id limit :limit;

-- name: dead_letters_of_instance
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context
from dead_letters
where instance = :instance and tenant = :tenant and id > :after and (:definition = '' or definition = :definition)
    and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
order by id limit :limit;

-- name: count_letters
select count(*) from dead_letters
where tenant = :tenant and (:definition = '' or definition = :definition) and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
    and (:instance is null or instance = :instance);

-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context
from dead_letters where id = ? and tenant = ?;

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from observations
where tenant = :tenant and (:definition = '' or definition = :definition) and (:instance is null or instance = :instance)
order by id;

-- name: transitions
select from_status, input, to_status, count(*) from observations where tenant = ? and definition = ? and not skipped
group by from_status, input, to_status order by from_status, input, to_status;
