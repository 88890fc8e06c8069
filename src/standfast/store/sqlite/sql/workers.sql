-- name: beat
insert into workers (id, name, handlers, started_at, alive_until) values (?, ?, ?, ?, ?)
on conflict (id) do update set handlers = excluded.handlers, alive_until = excluded.alive_until;

-- name: remove_dead
delete from workers where alive_until < ?;

-- name: free_orphans
-- Only live workers own effects.
update effects set owner = null, claimed_at = null, fence = fence + 1
where owner is not null and owner not in (select id from workers) returning handler;

-- name: still_held
select stop_requested,
    case when stop_requested then exists (select 1 from instances i where i.id = effects.instance and i.ended_at is not null) else 0 end
from effects where instance = ? and number = ? and owner = ? and fence = ?;

-- name: maintenance
select value from meta where name = 'maintenance';

-- name: retire
delete from workers where id = ?;

-- name: free_held
update effects set owner = null, claimed_at = null, fence = fence + 1 where owner = ?;

-- name: live
select id, name, handlers, started_at, alive_until from workers where alive_until >= ? order by started_at, id;

-- name: announce
-- The process that advances the time makes the report. Others wait until it is old enough again.
insert into meta (name, value) values ('unhandled:' || ?, ?)
on conflict (name) do update set value = excluded.value where meta.value <= ? returning 1;
