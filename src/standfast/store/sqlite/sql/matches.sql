-- Lists of processes, newest first. Each statement serves the most selective filter. The first ones are executed per
-- status.

-- name: of_status
-- Of one partition.
select id from instances
where kind = 'process' and tenant = :tenant and coalesce(partition, '') = :partition and status = :status and id < :before
    and (:definition = '' or definition = :definition) and (:key = '' or key = :key) and (:started_by = '' or started_by = :started_by)
order by id desc limit :limit;

-- name: versions
-- Steps from one version of a definition to the next along the index.
with recursive v (version) as (
    select * from (
        select definition_version from instances indexed by instances_by_definition
        where tenant = :tenant and definition = :definition order by definition_version limit 1
    )
    union all
    select (
        select definition_version from instances indexed by instances_by_definition
        where tenant = :tenant and definition = :definition and definition_version > v.version order by definition_version limit 1
    ) from v where v.version is not null
)
select version from v where version is not null;

-- name: of_definition
select id from instances indexed by instances_by_definition
where tenant = :tenant and definition = :definition and definition_version = :version and status = :status and begun = :begun and id < :before
    and +kind = 'process'
    and (:partition is null or coalesce(partition, '') = :partition) and (:key = '' or key = :key)
    and (:started_by = '' or started_by = :started_by)
order by id desc limit :limit;

-- name: everywhere
select id from instances
where tenant = :tenant and kind = 'process' and status = :status and begun = :begun and id < :before
    and (:partition is null or coalesce(partition, '') = :partition) and (:definition = '' or definition = :definition)
    and (:key = '' or key = :key) and (:started_by = '' or started_by = :started_by)
order by id desc limit :limit;

-- name: of_starter
select id from instances
where kind = 'process' and tenant = :tenant and started_by = :started_by and id < :before
    and status in (select value from json_each(:statuses)) and (:partition is null or coalesce(partition, '') = :partition)
    and (:definition = '' or definition = :definition) and (:key = '' or key = :key)
order by id desc limit :limit;

-- name: of_key
select id from instances
where tenant = :tenant and key = :key and +kind = 'process' and id < :before
    and status in (select value from json_each(:statuses)) and (:partition is null or coalesce(partition, '') = :partition)
    and (:definition = '' or definition = :definition) and (:started_by = '' or started_by = :started_by)
order by id desc limit :limit;

-- name: versions_of_person
-- The same as `of_person`, counted by version and status.
select definition, definition_version, status, has_voted, count(*) from (
    select distinct p.instance, i.definition, i.definition_version, i.status, exists (
        select 1 from task_decisions d
        where d.instance = p.instance and d.number = p.number and not d.is_withdrawn and :voter in (d.actor, d.on_behalf_of)
    ) as has_voted
    from task_people as p cross join instances as i on i.id = p.instance
    where p.tenant = :tenant and p.kind = :person_kind and p.name = :person and p.is_open and p.instance < :before
        and i.kind = 'process' and i.status in (select value from json_each(:statuses))
        and (:only = '' or i.definition = :only) and (:partition is null or coalesce(i.partition, '') = :partition)
        and (:definition = '' or i.definition = :definition) and (:key = '' or i.key = :key)
        and (:started_by = '' or i.started_by = :started_by)
    order by p.instance desc limit :limit
) group by definition, definition_version, status, has_voted;

-- name: current_steps
select s.instance, s.current_step from json_each(:instances) as i cross join processes s on s.instance = i.value
where +s.tenant = :tenant;

-- name: of_person
-- At a step with this approver.
select distinct p.instance from task_people as p cross join instances as i on i.id = p.instance
where p.tenant = :tenant and p.kind = :person_kind and p.name = :person and p.is_open and p.instance < :before
    and i.kind = 'process' and i.status in (select value from json_each(:statuses))
    and (:only = '' or i.definition = :only) and (:partition is null or coalesce(i.partition, '') = :partition)
    and (:definition = '' or i.definition = :definition) and (:key = '' or i.key = :key)
    and (:started_by = '' or i.started_by = :started_by)
order by p.instance desc limit :limit;
