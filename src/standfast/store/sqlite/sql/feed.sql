-- name: read
select e.position, e.instance, e.sequence, e.tenant, e.type, e.version, e.data, e.at, e.actor, e.comment, e.cause,
    i.definition, i.definition_version, i.key, e.on_behalf_of, e.trace
from events e left join instances i on i.id = e.instance where e.position > ? order by e.position limit ?;

-- name: headlines
select e.position, e.tenant, e.instance, e.sequence, e.type, coalesce(i.definition, '')
from events e left join instances i on i.id = e.instance where e.position > ? order by e.position limit ?;

-- name: newest
select coalesce(max(position), 0) from events;

-- name: checkpoint
select position from projections where name = ?;

-- name: enter
insert into projections (name, position, error) values (?, 0, '') on conflict do nothing;

-- name: drop
delete from projections where name = ?;

-- name: move
insert into projections (name, position, updated_at, error) values (?, ?, ?, '')
on conflict (name) do update set position = excluded.position, updated_at = excluded.updated_at, error = '', failed_at = null;

-- name: fail
-- A repeated failure keeps the time of the first one.
insert into projections (name, position, updated_at, error, failed_at) values (:name, 0, :now, :error, :now)
on conflict (name) do update set
    updated_at = excluded.updated_at, error = excluded.error, failed_at = coalesce(failed_at, excluded.failed_at);

-- name: projections
select n.name, coalesce(p.position, 0), (
    select count(*) from (select 1 from events e where e.position > coalesce(p.position, 0) limit :most)
), p.updated_at, coalesce(p.error, ''), p.failed_at
from (select name from projections union select value from json_each(:names)) as n
left join projections p on p.name = n.name order by n.name;
