-- name: stretch
select max(id), count(*) from (select id from instances where id > ? order by id limit ?);

-- name: incidents
-- The criteria of `stuck`, for all tenants, between two ids.
select i.id, i.tenant, i.definition, i.updated_at from instances i
where i.id > :after and i.id <= :last and i.status = 'running' and i.kind in (select value from json_each(:kinds))
    and i.updated_at < :since
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
order by i.id;

-- name: long_calls
select instance, number, tenant, definition, handler, owner, claimed_at, options from effects indexed by effects_owned
where owner is not null and claimed_at < ? order by claimed_at limit ?;

-- name: undecidable
select id, tenant, definition, paused_at from instances indexed by instances_late
where reason = 'no_approver' and paused_at is not null and status = 'paused' order by paused_at limit ?;

-- name: next_asked
-- Steps from one name to the next along the index: to another name, kind or tenant.
select * from (
    select tenant, kind, name from task_people indexed by task_people_open
    where is_open and tenant = :tenant and kind = :kind and name > :name order by name limit 1
)
union all
select * from (
    select tenant, kind, name from task_people indexed by task_people_open
    where is_open and tenant = :tenant and kind > :kind order by kind, name limit 1
)
union all
select * from (
    select tenant, kind, name from task_people indexed by task_people_open
    where is_open and tenant > :tenant order by tenant, kind, name limit 1
)
limit 1;

-- name: deputed
select tenant, instance, number, place, name, stands_for, via from task_people indexed by task_people_deputed
where is_open and stands_for <> '' and (tenant, instance, number, place) > (?, ?, ?, ?)
order by tenant, instance, number, place limit ?;

-- name: refused_schedules
select i.id, i.tenant, i.definition, f.told_at, i.key, f.detail, coalesce(i.partition, '')
from schedules s cross join instances i on i.id = s.instance
cross join schedule_fires f on f.instance = s.instance
    and f.place = (select min(l.place) from schedule_fires l where l.instance = s.instance)
where f.status = 'refused' and i.reason <> 'deleted' order by f.told_at limit ?;
