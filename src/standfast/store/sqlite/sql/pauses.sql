-- name: begin
-- Of two concurrent pauses with the same scope, the second one finds the first.
insert into pauses (tenant, definition, version, step, clock, reason, paused_by, paused_at, until) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing;

-- name: standing_for
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from pauses where tenant = ? and definition = ? and version = ? and step = ? and ended_at is null;

-- name: end
update pauses set ended_at = ?, ended_by = ?, ended_why = ?, walks = 0 where id = ? and ended_at is null;

-- name: standing
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from pauses where ended_at is null or walks < 2 order by id;

-- name: get
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from pauses where id = ?;

-- name: listed
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from pauses where (:tenant = '*' or tenant in (:tenant, '*')) and (:before is null or id < :before) order by id desc limit :limit;

-- name: counts
select c.tenant, c.definition, c.version, sum(c.effects), sum(c.timers) from (
    select e.tenant, e.definition, coalesce(i.definition_version, '') as version, 1 as effects, 0 as timers
    from effects e indexed by effects_held left join instances i on i.id = e.instance where e.held_at is not null
    union all
    select t.tenant, t.definition, coalesce(i.definition_version, ''), 0, 1
    from timers t indexed by timers_held left join instances i on i.id = t.instance where t.held_at is not null
) as c group by 1, 2, 3 order by 1, 2, 3;

-- name: held_effects
select e.instance, e.number, e.tenant, e.definition, coalesce(i.definition_version, ''), e.language, e.type, e.version, e.data, e.rank,
    e.held_at
from effects e indexed by effects_held left join instances i on i.id = e.instance
where e.held_at is not null and (:tenant = '*' or e.tenant = :tenant) and (:definition = '' or e.definition = :definition);

-- name: is_astray
select exists (select 1 from effects indexed by effects_held where held_at is not null)
    or exists (select 1 from timers indexed by timers_held where held_at is not null);

-- name: versions
select definition_version from instances where id = ?;

-- name: hold_back
update effects set owner = null, claimed_at = null, attempts = attempts - 1, held_at = ?
where instance = ? and number = ? and owner = ? and fence = ?;

-- name: hold_timer
update timers set claimed_until = null, held_at = ?, frozen_at = ? where instance = ? and key = ? and number = ? and held_at is null;

-- name: prune
delete from pauses where id in (select id from pauses where ended_at < ? and walks = 2 limit ?);

-- name: read_walk
select value from meta where name = 'walk';

-- name: write_walk
insert into meta (name, value) values ('walk', ?) on conflict (name) do update set value = excluded.value;

-- name: walked
-- Unless the pause has ended since it was read: then all rows must be examined again.
update pauses set walks = ? where id = ? and ended_at is ?;

-- name: next_effects
select e.instance, e.number, e.tenant, e.definition, coalesce(i.definition_version, ''), e.language, e.type, e.version,
    case when :whole then e.data else x'' end, e.rank, e.held_at
from effects e left join instances i on i.id = e.instance
where (e.instance, e.number) > (:instance, :number) order by e.instance, e.number limit :limit;

-- name: next_timers
select t.instance, t.key, t.number, t.tenant, t.definition, coalesce(i.definition_version, ''), t.language, t.due_at, t.held_at,
    t.frozen_at
from timers t left join instances i on i.id = t.instance
where (t.instance, t.key) > (:instance, :key) order by t.instance, t.key limit :limit;

-- name: change_effect
update effects set rank = ?, held_at = ? where instance = ? and number = ?;

-- name: change_timer
update timers set due_at = ?, held_at = ?, frozen_at = ? where instance = ? and key = ? and number = ? and due_at = ?;
