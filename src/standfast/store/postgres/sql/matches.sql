-- Lists of processes, newest first. Each statement serves the most selective filter. All take the same values: $1
-- tenant, $2 statuses, $3 partition (null means any), $4 definition, $5 key, $6 starter, $7 last of the previous page,
-- $8 limit.
--
-- Ids are written as the greatest of one, as in the indexes of lists. Otherwise the planner would scan all instances
-- from the newest one until the page is full, and all of them if there are no matches.

-- name: of_status
-- Reads the statuses of one partition, each newest first, then the newest of all.
select f.id from unnest($2::text[]) as s (status)
cross join lateral (
    select i.id from standfast.instances i
    where i.kind = 'process' and i.created_at <> '-infinity' and i.tenant = $1::text
        and case when i.partition is null then '' else i.partition end = $3::text and i.status = s.status
        and ($4::text = '' or i.definition = $4::text) and ($5::text = '' or i.key = $5::text)
        and ($6::text = '' or i.started_by = $6::text) and greatest(i.id) < $7::uuid
    order by greatest(i.id) desc limit $8::int8
) as f
order by f.id desc limit $8::int8

-- name: of_definition
-- Steps from one version of a definition to the next, and reads their statuses, instances that have begun and those
-- that have not.
with recursive v (version) as (
    (
        select i.definition_version from standfast.instances i
        where i.tenant = $1::text and i.definition = $4::text and i.created_at > '-infinity'
        order by i.definition_version limit 1
    )
    union all
    select f.definition_version from v cross join lateral (
        select i.definition_version from standfast.instances i
        where i.tenant = $1::text and i.definition = $4::text and i.created_at > '-infinity' and i.definition_version > v.version
        order by i.definition_version limit 1
    ) as f
)
select f.id from v cross join unnest($2::text[]) as s (status) cross join (values (true), (false)) as b (begun)
cross join lateral (
    select i.id from standfast.instances i
    where i.tenant = $1::text and i.definition = $4::text and i.definition_version = v.version and i.status = s.status and i.begun = b.begun
        and i.created_at > '-infinity' and i.kind = 'process' and ($3::text is null or coalesce(i.partition, '') = $3::text)
        and ($5::text = '' or i.key = $5::text) and ($6::text = '' or i.started_by = $6::text) and greatest(i.id) < $7::uuid
    order by greatest(i.id) desc limit $8::int8
) as f
order by f.id desc limit $8::int8

-- name: everywhere
-- The same in all partitions and for all definitions.
select f.id from unnest($2::text[]) as s (status) cross join (values (true), (false)) as b (begun)
cross join lateral (
    select i.id from standfast.instances i
    where i.tenant = $1::text and i.kind = 'process' and i.status = s.status and i.begun = b.begun and i.created_at < 'infinity'
        and ($3::text is null or coalesce(i.partition, '') = $3::text) and ($4::text = '' or i.definition = $4::text)
        and ($5::text = '' or i.key = $5::text) and ($6::text = '' or i.started_by = $6::text) and greatest(i.id) < $7::uuid
    order by greatest(i.id) desc limit $8::int8
) as f
order by f.id desc limit $8::int8

-- name: of_starter
select i.id from standfast.instances i
where i.kind = 'process' and i.tenant = $1::text and i.started_by = $6::text and i.status = any ($2::text[])
    and ($3::text is null or coalesce(i.partition, '') = $3::text) and ($4::text = '' or i.definition = $4::text)
    and ($5::text = '' or i.key = $5::text) and greatest(i.id) < $7::uuid
order by greatest(i.id) desc limit $8::int8

-- name: of_key
-- One key has at most one instance per definition.
select i.id from standfast.instances i
where i.tenant = $1::text and i.key = $5::text and i.kind = 'process' and i.status = any ($2::text[])
    and ($3::text is null or coalesce(i.partition, '') = $3::text) and ($4::text = '' or i.definition = $4::text)
    and ($6::text = '' or i.started_by = $6::text) and i.id < $7::uuid
order by i.id desc limit $8::int8

-- name: current_steps
-- Of these processes ($2).
select s.instance, s.current_step from unnest($2::uuid[]) as u (instance)
cross join lateral (select * from standfast.processes where instance = u.instance and tenant = $1::text offset 0) as s

-- name: of_people
-- At a step with one of these users and roles as approver ($9 kind, $10 name, $11 an optional definition), each newest
-- first. The offset keeps the planner from joining whole tables.
select distinct f.id from unnest($9::text[], $10::text[], $11::text[]) as w (kind, name, definition)
cross join lateral (
    select distinct p.name, p.instance as id from standfast.task_people p cross join lateral (
        select n.* from standfast.instances n where n.id = p.instance and n.tenant = $1::text offset 0
    ) as i
    where p.tenant = $1::text and p.kind = w.kind and p.name between w.name and w.name and p.is_open and p.instance < $7::uuid
        and i.kind = 'process' and i.status = any ($2::text[]) and (w.definition = '' or i.definition = w.definition)
        and ($3::text is null or coalesce(i.partition, '') = $3::text) and ($4::text = '' or i.definition = $4::text)
        and ($5::text = '' or i.key = $5::text) and ($6::text = '' or i.started_by = $6::text)
    order by p.name desc, p.instance desc limit $8::int8
) as f
order by f.id desc limit $8::int8
