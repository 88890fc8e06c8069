-- name: stretch
select (array_agg(u.id order by u.id desc))[1], count(*)::int8
from (select id from standfast.instances where id > ?::uuid order by id limit ?::int8) as u

-- name: incidents
-- The criteria of `stuck`, for all tenants, between two ids.
select i.id, i.tenant, i.definition, i.updated_at from standfast.instances i
where i.id > ?::uuid and i.id <= ?::uuid and i.status = 'running' and i.kind = any (?::text[]) and i.updated_at < ?::timestamptz
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
order by i.id

-- name: long_calls
-- Includes calls handed over by a commit (fence 0). They are in no index, so that no commit pays for this query, which
-- runs once a minute.
select instance, number, tenant, definition, handler, owner, claimed_at, options from standfast.effects
where owner is not null and claimed_at < ?::timestamptz order by claimed_at limit ?::int8

-- name: undecidable
select id, tenant, definition, paused_at from standfast.instances
where reason = 'no_approver' and paused_at is not null and status = 'paused' order by paused_at limit ?::int8

-- name: asked
-- Steps from one name to the next along the index.
with recursive a (tenant, kind, name) as (
    (
        select tenant, kind, name from standfast.task_people
        where is_open and (tenant, kind, name) > (?::text, ?::text, ?::text) order by tenant, kind, name limit 1
    )
    union all
    select f.* from a cross join lateral (
        select p.tenant, p.kind, p.name from standfast.task_people p
        where p.is_open and (p.tenant, p.kind, p.name) > (a.tenant, a.kind, a.name) order by p.tenant, p.kind, p.name limit 1
    ) as f
)
select tenant, kind, name from a limit ?::int8

-- name: deputed
select tenant, instance, number, place, name, stands_for, via from standfast.task_people
where is_open and stands_for <> '' and (tenant, instance, number, place) > (?::text, ?::uuid, ?::int8, ?::int8)
order by tenant, instance, number, place limit ?::int8

-- name: refused_schedules
select i.id, i.tenant, i.definition, f.told_at, i.key, f.detail, coalesce(i.partition, '')
from standfast.schedules s join standfast.instances i on i.id = s.instance
cross join lateral (
    select l.status, l.told_at, l.detail from standfast.schedule_fires l where l.instance = s.instance order by l.place limit 1
) as f
where f.status = 'refused' and i.reason <> 'deleted' order by f.told_at limit ?::int8
