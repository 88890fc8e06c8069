-- name: begin
-- Of two concurrent pauses with the same scope, the second one finds the first.
insert into standfast.pauses (tenant, definition, version, step, clock, reason, paused_by, paused_at, until)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::timestamptz, ?::timestamptz)
on conflict do nothing

-- name: standing_for
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from standfast.pauses where tenant = ?::text and definition = ?::text and version = ?::text and step = ?::text and ended_at is null

-- name: end
update standfast.pauses set ended_at = ?::timestamptz, ended_by = ?::text, ended_why = ?::text, walks = 0
where id = ?::int8 and ended_at is null

-- name: standing
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from standfast.pauses where ended_at is null or walks < 2 order by id

-- name: get
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from standfast.pauses where id = ?::int8

-- name: listed
select id, tenant, definition, version, step, clock, reason, paused_by, paused_at, until, ended_at, ended_by, ended_why, walks
from standfast.pauses where ($1::text = '*' or tenant in ($1::text, '*')) and ($2::int8 is null or id < $2::int8)
order by id desc limit $3::int8

-- name: counts
select c.tenant, c.definition, c.version, sum(c.effects)::int8, sum(c.timers)::int8 from (
    select e.tenant, e.definition, coalesce(i.definition_version, '') as version, 1 as effects, 0 as timers
    from standfast.effects e left join standfast.instances i on i.id = e.instance where e.held_at is not null
    union all
    select t.tenant, t.definition, coalesce(i.definition_version, ''), 0, 1
    from standfast.timers t left join standfast.instances i on i.id = t.instance where t.held_at is not null
) as c group by 1, 2, 3 order by 1, 2, 3

-- name: held_effects
select e.instance, e.number, e.tenant, e.definition, coalesce(i.definition_version, ''), e.language, e.type, e.version, e.data, e.rank,
    e.held_at
from standfast.effects e left join standfast.instances i on i.id = e.instance
where e.held_at is not null and ($1::text = '*' or e.tenant = $1::text) and ($2::text = '' or e.definition = $2::text)

-- name: is_astray
select exists (select 1 from standfast.effects where held_at is not null) or exists (select 1 from standfast.timers where held_at is not null)

-- name: versions
select i.id, i.definition_version from unnest(?::uuid[]) as u (id)
cross join lateral (select id, definition_version from standfast.instances where id = u.id offset 0) as i

-- name: hold_back
update standfast.effects e set owner = null, claimed_at = null, attempts = attempts - 1, held_at = t.at
from unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence), (select ?::timestamptz as at) as t
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner = u.owner and e.fence = u.fence

-- name: hold_timers
update standfast.timers t set claimed_until = null, held_at = n.at, frozen_at = u.frozen_at
from unnest(?::uuid[], ?::text[], ?::int4[], ?::timestamptz[]) as u (instance, key, number, frozen_at), (select ?::timestamptz as at) as n
where t.instance = any (array[u.instance]) and t.key = u.key and t.number = u.number and t.held_at is null

-- name: prune
delete from standfast.pauses where id = any (array(
    select id from standfast.pauses where ended_at < ?::timestamptz and walks = 2 limit ?::int8
))

-- name: lock_walk
-- One process propagates at a time. Others return without work.
select pg_try_advisory_xact_lock(4773520042)

-- name: read_walk
select value from standfast.meta where name = 'walk'

-- name: write_walk
insert into standfast.meta (name, value) values ('walk', ?::text) on conflict (name) do update set value = excluded.value

-- name: walked
-- Unless the pause has ended since it was read: then all rows must be examined again.
update standfast.pauses set walks = ?::int2 where id = ?::int8 and ended_at is not distinct from ?::timestamptz

-- name: next_effects
-- Row by row along the key, and instance by instance, whatever the planner assumes about table sizes.
select e.instance, e.number, e.tenant, e.definition, coalesce(i.definition_version, ''), e.language, e.type, e.version,
    case when $4::bool then e.data else ''::bytea end, e.rank, e.held_at
from (
    select * from standfast.effects where (instance, number) > ($1::uuid, $2::int4) order by instance, number limit $3::int8
) as e left join lateral (select definition_version from standfast.instances where id = e.instance offset 0) as i on true
order by e.instance, e.number

-- name: next_timers
select t.instance, t.key, t.number, t.tenant, t.definition, coalesce(i.definition_version, ''), t.language,
    greatest(least(t.due_at, '9999-12-31 23:59:59.999999+00'), '0001-01-01 00:00:00+00'), t.held_at, t.frozen_at
from (
    select * from standfast.timers where (instance, key) > ($1::uuid, $2::text) order by instance, key limit $3::int8
) as t left join lateral (select definition_version from standfast.instances where id = t.instance offset 0) as i on true
order by t.instance, t.key

-- name: change_effects
update standfast.effects e set rank = u.rank, held_at = u.held_at
from unnest(?::uuid[], ?::int4[], ?::int8[], ?::timestamptz[]) as u (instance, number, rank, held_at)
where e.instance = any (array[u.instance]) and e.number = u.number

-- name: change_timers
update standfast.timers t set due_at = u.due_at, held_at = u.held_at, frozen_at = u.frozen_at
from unnest(?::uuid[], ?::text[], ?::int4[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[])
    as u (instance, key, number, due_before, due_at, held_at, frozen_at)
where t.instance = any (array[u.instance]) and t.key = u.key and t.number = u.number and t.due_at = u.due_before
