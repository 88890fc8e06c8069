-- name: instances_of_parent
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_by_parent
where parent = :parent and status = :at_status and tenant = :tenant and (:partition is null or coalesce(partition, '') = :partition)
    and (:definition = '' or definition = :definition) and (:definition_version = '' or definition_version = :definition_version)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
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
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances
where tenant = :tenant and key = :key and (:partition is null or coalesce(partition, '') = :partition) and (:definition = '' or definition = :definition)
    and (:parent is null or parent = :parent)
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

-- name: instances_by_reason
-- Instances that ended for a reason, newest first.
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_by_reason
where tenant = :tenant and reason = :reason and ended_at is not null and reason <> ''
    and (:partition is null or coalesce(partition, '') = :partition) and (:parent is null or parent = :parent)
    and (:key = '' or key = :key) and (:definition = '' or definition = :definition)
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
-- Along the index of instances with search attributes, newest first.
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_by_attribute
where tenant = :tenant and attributes is not null and (:partition is null or coalesce(partition, '') = :partition) and (:definition = '' or definition = :definition)
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
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_by_definition
where tenant = :tenant and definition = :definition and definition_version = :at_version and status = :at_status and begun = :is_begun
    and (:partition is null or coalesce(partition, '') = :partition)
    and (:kinds is null or kind in (select value from json_each(:kinds)))
    and (:begun is null or begun or not exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    ))
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
order by id desc limit :limit;

-- name: instances_of_status
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_by_status
where tenant = :tenant and kind = :at_kind and status = :at_status and begun = :is_begun
    and (:partition is null or coalesce(partition, '') = :partition)
    and (:begun is null or begun or not exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    ))
    and (:definition_version = '' or definition_version = :definition_version)
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
order by id desc limit :limit;

-- name: instances_of_partition
select id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
    ended_at, partition, started_by, paused_at, deadline_at, attributes, commits, next_step
from instances indexed by instances_of_partition
where tenant = :tenant and partition = :partition and kind = :at_kind and definition = :at_definition and status = :at_status
    and begun = :is_begun
    and (:begun is null or begun or not exists (
        select 1 from effects e where e.instance = instances.id and e.tenant = :tenant and e.owner is not null
    ))
    and (:definition_version = '' or definition_version = :definition_version)
    and id >= :first and id < :before and (:after is null or created_at >= :after) and (:until is null or created_at < :until)
order by id desc limit :limit;

-- name: instances_in_hand
-- Instances that have not begun although a worker has claimed one of their effects. Read from the claimed effects,
-- which are few.
select n.id, n.tenant, n.definition, n.definition_version, n.kind, n.key, n.status, n.reason, n.begun, n.version, n.issued, n.parent,
    n.created_at, n.updated_at, n.ended_at, n.partition, n.started_by, n.paused_at, n.deadline_at, n.attributes, n.commits, n.next_step
from (
    select distinct instance from effects indexed by effects_owned where owner is not null and +tenant = :tenant
) as h cross join instances n on n.id = h.instance
where +n.tenant = :tenant and not n.begun and (:partition is null or coalesce(n.partition, '') = :partition) and (:definition = '' or n.definition = :definition)
    and (:definition_version = '' or n.definition_version = :definition_version)
    and (:kinds is null or n.kind in (select value from json_each(:kinds)))
    and (:statuses is null or n.status in (select value from json_each(:statuses)))
    and n.id >= :first and n.id < :before and (:after is null or n.created_at >= :after)
    and (:until is null or n.created_at < :until)
order by n.id desc limit :limit;

-- name: next_of_definition
-- The next version and status along the index, after all rows with the previous ones: `begun` is 1 at most.
select definition_version as at_version, status as at_status from instances indexed by instances_by_definition
where tenant = :tenant and definition = :definition and (definition_version, status, begun) > (:at_version, :at_status, 2)
order by definition_version, status limit 1;

-- name: next_of_parent
-- The same for the status of the children of an instance: no id sorts after `~`.
select status as at_status from instances indexed by instances_by_parent
where parent = :parent and (status, id) > (:at_status, '~') order by status limit 1;

-- name: next_of_status
-- The same for kind and status.
select kind as at_kind, status as at_status from instances indexed by instances_by_status
where tenant = :tenant and (kind, status, begun) > (:at_kind, :at_status, 2)
order by kind, status limit 1;

-- name: next_of_partition
-- The same for kind, definition and status in one partition of the tenant.
select kind as at_kind, definition as at_definition, status as at_status from instances indexed by instances_of_partition
where tenant = :tenant and partition = :partition and (kind, definition, status, begun) > (:at_kind, :at_definition, :at_status, 2)
order by kind, definition, status limit 1;

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace
from events where instance = :instance and tenant = :tenant and sequence > :after
    and (:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition))
order by sequence limit :limit;

-- name: effects
select instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context
from effects where instance = :instance and tenant = :tenant
    and (:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition))
order by number;

-- name: timers
select instance, key, number, tenant, definition, language, type, version, data, due_at, attempts, error, context
from timers where instance = :instance and tenant = :tenant
    and (:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition))
order by due_at, number;

-- name: subscribers
select instance, number, place, definition from subscriptions
where tenant = :tenant and kind = 'event' and signal = :event and correlation = :correlation
    and (instance, number, place) > (:instance, :number, :place) and (:partition = '' or partition = :partition)
order by instance, number, place limit :limit;

-- name: kept_for
select number, id, event, correlation, match_one, expires_at, data, instance, published_at
from published_events
where tenant = :tenant and event = :event and correlation = :correlation and expires_at > :now
    and (published_at, instance) > (:at, :instance) and partition in ('', :partition)
order by published_at, instance limit :limit;

-- name: publications
select number, id, event, correlation, match_one, expires_at, data, instance, published_at
from published_events indexed by published_events_by_time
where tenant = :tenant and (:partition = '' or partition = :partition) and (:event = '' or event = :event) and expires_at > :now and (published_at, instance) > (:at, :instance)
order by published_at, instance limit :limit;

-- name: headers
-- The cross join and the plus keep the planner from reading every instance of the tenant instead of the named ones.
select n.id, n.tenant, n.definition, n.definition_version, n.kind, n.key, n.status, n.reason, n.begun, n.version, n.issued, n.parent,
    n.created_at, n.updated_at, n.ended_at, n.partition, n.started_by, n.paused_at, n.deadline_at, n.attributes, n.commits, n.next_step
from json_each(:instances) as i cross join instances n on n.id = i.value
where +n.tenant = :tenant and (:partition = '' or n.partition = :partition);

-- name: messages
select m.id, m.tenant, m.definition, m.key, m.instance, m.language, m.type, m.version, m.data, m.command_id, m.actor, m.comment,
    m.definition_version, m.parent, m.attempts, m.error, m.context, m.partition
from instances i cross join inbox m indexed by inbox_by_target on m.tenant = :tenant
    and m.target in (i.id, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
where i.id = :instance and +i.tenant = :tenant and (:partition = '' or i.partition = :partition) order by m.id limit :limit;

-- name: stuck
-- An open step for a person or a signal justifies waiting. One for a time or a child also needs what will wake it.
select i.id, i.tenant, i.definition, i.definition_version, i.kind, i.key, i.status, i.reason, i.begun, i.version, i.issued, i.parent,
    i.created_at, i.updated_at, i.ended_at, i.partition, i.started_by, i.paused_at, i.deadline_at, i.attributes, i.commits, i.next_step
from instances i
where i.tenant = :tenant and i.kind in (select value from json_each(:kinds)) and i.status = 'running' and i.id < :before
    and (:partition = '' or i.partition = :partition)
    and not exists (select 1 from effects e where e.instance = i.id)
    and not exists (select 1 from timers t where t.instance = i.id)
    and not exists (
        select 1 from steps s
        where s.instance = i.id and s.status in ('pending', 'running') and s.wait_kind not in ('', 'timer', 'child')
    )
    and not exists (select 1 from dead_letters d where d.instance = i.id)
    and not exists (select 1 from instances c where c.parent = i.id and c.ended_at is null)
    and not exists (
        select 1 from inbox m where m.tenant = i.tenant
            and m.target in (i.id, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (select 1 from inbox m where m.parent = i.id)
order by i.id desc limit :limit;

-- name: in_hand
select i.value from json_each(:instances) as i
where exists (select 1 from effects where instance = i.value and tenant = :tenant and owner is not null)
    and (:partition = '' or exists (select 1 from instances p where p.id = i.value and p.partition = :partition));

-- name: step_names
select number, node, compensates from steps
where instance = :instance and tenant = :tenant and number in (select value from json_each(:numbers))
    and (:partition = '' or exists (select 1 from instances p where p.id = :instance and p.partition = :partition));

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from dead_letters
where tenant = :tenant and (:partition = '' or partition = :partition) and id > :after and (:definition = '' or definition = :definition) and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
order by id limit :limit;

-- name: dead_letters_of_instance
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from dead_letters
where instance = :instance and tenant = :tenant and (:partition = '' or partition = :partition) and id > :after and (:definition = '' or definition = :definition)
    and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
order by id limit :limit;

-- name: count_letters
select count(*) from dead_letters
where tenant = :tenant and (:partition = '' or partition = :partition) and (:definition = '' or definition = :definition) and (:source is null or source = :source)
    and (:key = '' or key = :key or instance in (select i.id from instances i where i.tenant = :tenant and i.key = :key))
    and (:instance is null or instance = :instance);

-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from dead_letters where id = :letter and tenant = :tenant and (:partition = '' or partition = :partition);

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from observations
where tenant = :tenant and (:definition = '' or definition = :definition) and (:instance is null or instance = :instance)
    and (:partition = '' or exists (select 1 from instances p where p.id = observations.instance and p.partition = :partition))
order by id;

-- name: transitions
select from_status, input, to_status, count(*) from observations
where tenant = :tenant and definition = :definition and not skipped
    and (:partition = '' or exists (select 1 from instances p where p.id = observations.instance and p.partition = :partition))
group by from_status, input, to_status order by from_status, input, to_status;
