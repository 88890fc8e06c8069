-- name: stretch
select (array_agg(u.id order by u.id desc))[1], count(*)::int8
from (select id from holdfast.instances where id > ?::uuid order by id limit ?::int8) as u

-- name: incidents
-- As `stuck` counts them, of all tenants, between two ids.
select i.id, i.tenant, i.definition, i.updated_at from holdfast.instances i
where i.id > ?::uuid and i.id <= ?::uuid and i.status = 'running' and i.kind = any (?::text[]) and i.updated_at < ?::timestamptz
    and not exists (select 1 from holdfast.effects e where e.instance = i.id)
    and not exists (select 1 from holdfast.timers t where t.instance = i.id)
    and not exists (
        select 1 from holdfast.steps s
        where s.instance = i.id and s.status in ('pending', 'running') and s.wait_kind not in ('', 'timer', 'child')
    )
    and not exists (select 1 from holdfast.dead_letters d where d.instance = i.id)
    and not exists (select 1 from holdfast.instances c where c.parent = i.id and c.ended_at is null)
    and not exists (
        select 1 from holdfast.inbox m where m.tenant = i.tenant
            and m.target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (select 1 from holdfast.inbox m where m.parent = i.id)
order by i.id
