-- name: stretch
select max(id), count(*) from (select id from instances where id > ? order by id limit ?);

-- name: incidents
-- As `stuck` counts them, of all tenants, between two ids.
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
