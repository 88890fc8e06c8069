-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from standfast.dead_letters where id = ?::int8 and tenant = ?::text

-- name: discard
delete from standfast.dead_letters where id = ?::int8 and tenant = ?::text

-- name: hold_instance
-- A withdrawal of the effect updates the instance in the same commit, so that one waits for the other.
select 1 from standfast.instances where id = ?::uuid for share

-- name: revive_effect
insert into standfast.effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, fence, attempts, error,
    created_at, context
) values (
    ?::uuid, ?::int4, ?::text, ?::text, ?::text, ?::text, ?::text, ?::int2, ?::bytea, ?::bytea, ?::int2, ?::int8, ?::int4, 0, '',
    ?::timestamptz, ?::bytea
)

-- name: finished
select 1 from standfast.instances i where i.id = ?::uuid and i.tenant = ?::text and i.ended_at is not null
    and not exists (select 1 from standfast.instances c where c.parent = i.id and c.ended_at is null)
for update

-- name: part_of
-- The saga or document that the instance is a part of, while it may still compensate it: the parent, or the whole that
-- a completed parent is a part of.
with recursive wholes (id, parent, status, ended_at) as (
    select p.id, p.parent, p.status, p.ended_at from standfast.instances i join standfast.instances p on p.id = i.parent
    where i.id = ?::uuid and p.kind in ('saga', 'envelope')
    union all
    select p.id, p.parent, p.status, p.ended_at from wholes w join standfast.instances p on p.id = w.parent
    where w.status = 'completed' and p.kind in ('saga', 'envelope')
)
select w.id from wholes w
where w.ended_at is null or exists (select 1 from standfast.dead_letters d where d.instance = w.id and d.source = 'compensation') limit 1

-- name: remains
-- What still needs an ended instance.
select
    (select count(*) from standfast.effects where instance = i.id),
    (select count(*) from standfast.dead_letters where instance = i.id),
    (
        select count(*) from standfast.inbox where tenant = i.tenant
            and target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    ),
    array(
        select p.name from standfast.projections p
        where p.position < (select e.position from standfast.events e where e.instance = i.id and e.sequence = i.version)
        order by p.name
    )
from standfast.instances i where i.id = ?::uuid

-- name: allow
select set_config('standfast.retention', ?::text, true)

-- name: delete_whole
with a as (delete from standfast.events where instance = $1::uuid),
    b as (delete from standfast.snapshots where instance = $1::uuid),
    c as (delete from standfast.timers where instance = $1::uuid),
    d as (delete from standfast.observations where instance = $1::uuid),
    e as (
        delete from standfast.notification_reads
        where notification in (select n.id from standfast.notifications n where n.instance = $1::uuid)
    ),
    f as (delete from standfast.notifications where instance = $1::uuid)
delete from standfast.instances where id = $1::uuid

-- name: delete_work
-- Only on request: a message that arrives between the check and the deletion is not lost.
with a as (delete from standfast.effects where instance = $1::uuid),
    b as (delete from standfast.inbox where instance = $1::uuid)
delete from standfast.dead_letters where instance = $1::uuid

-- name: prune_receipts
-- Receipts of open documents are kept at any age, because a repeated call must not take effect again.
delete from standfast.receipts where ctid = any (array(
    select r.ctid from standfast.receipts r where r.created_at < ?::timestamptz and not exists (
        select 1 from standfast.instances i where i.id = r.instance and i.kind = 'envelope' and i.ended_at is null
    ) limit ?::int8
))

-- name: old_steps
select instance, number, input, output, status in ('completed', 'failed', 'skipped', 'cancelled') and moved_at < $1::timestamptz
from standfast.steps where (instance, number) > ($2::uuid, $3::bigint) and instance < $4::uuid order by instance, number limit $5::bigint

-- name: pack_step
update standfast.steps set input = $3::bytea, output = $4::bytea
where instance = $1::uuid and number = $2::integer and input is not distinct from $5::bytea and output is not distinct from $6::bytea

-- name: expired
-- Ended instances without work, dead letters, messages, active children, or a saga or document that may compensate
-- them, whose last event all projections have read. Instances that ended after the first unread event are not examined.
select i.tenant, i.id from standfast.instances i
where i.ended_at < least($1::timestamptz, (
        select e.at from standfast.events e
        where e.position > (select min(position) from standfast.projections) order by e.position limit 1
    ))
    and not exists (select 1 from standfast.instances c where c.parent = i.id and c.ended_at is null)
    and not exists (
        with recursive wholes (id, parent, status, ended_at) as (
            select p.id, p.parent, p.status, p.ended_at from standfast.instances p where p.id = i.parent and p.kind in ('saga', 'envelope')
            union all
            select p.id, p.parent, p.status, p.ended_at from wholes w join standfast.instances p on p.id = w.parent
            where w.status = 'completed' and p.kind in ('saga', 'envelope')
        )
        select 1 from wholes w
        where w.ended_at is null or exists (select 1 from standfast.dead_letters d where d.instance = w.id and d.source = 'compensation')
    )
    and not exists (select 1 from standfast.effects e where e.instance = i.id)
    and not exists (select 1 from standfast.dead_letters d where d.instance = i.id)
    and not exists (
        select 1 from standfast.inbox m where m.tenant = i.tenant
            and m.target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (
        select 1 from standfast.events e
        where e.instance = i.id and e.sequence = i.version and e.position > (select min(position) from standfast.projections)
    )
order by i.ended_at limit $2::int8

-- name: expired_events
-- The same for published events, along their own index.
select i.tenant, i.id from standfast.instances i
where i.kind = 'event' and i.ended_at < least($1::timestamptz, (
        select e.at from standfast.events e
        where e.position > (select min(position) from standfast.projections) order by e.position limit 1
    ))
    and not exists (select 1 from standfast.instances c where c.parent = i.id and c.ended_at is null)
    and not exists (select 1 from standfast.effects e where e.instance = i.id)
    and not exists (select 1 from standfast.dead_letters d where d.instance = i.id)
    and not exists (
        select 1 from standfast.inbox m where m.tenant = i.tenant
            and m.target in (i.id::text, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (
        select 1 from standfast.events e
        where e.instance = i.id and e.sequence = i.version and e.position > (select min(position) from standfast.projections)
    )
order by i.ended_at limit $2::int8

-- name: late_readers
select p.name from standfast.projections p where ?::timestamptz > (
    select e.at from standfast.events e where e.position > p.position order by e.position limit 1
) order by p.name

-- name: make_partitions
select standfast.make_partitions(?::timestamptz, ?::int4)

-- name: set_maintenance
insert into standfast.meta (name, value) values ('maintenance', ?::text) on conflict (name) do update set value = excluded.value

-- name: end_maintenance
delete from standfast.meta where name = 'maintenance'

-- name: note
insert into standfast.meta (name, value) values ('note:' || ?::text, ?::text) on conflict (name) do update set value = excluded.value

-- name: forget
delete from standfast.meta where name = 'note:' || ?::text

-- name: noted
select value from standfast.meta where name = 'note:' || ?::text

-- name: receipted
select r.tenant, r.scope, r.key, r.instance, r.version, r.digest
from (select ?::text as tenant) as t cross join unnest(?::text[]) as u (scope)
cross join lateral (select * from standfast.receipts where tenant = t.tenant and scope = u.scope offset 0) as r

-- name: next_number
insert into standfast.meta (name, value) values ('counter:' || ?::text, '0')
on conflict (name) do update set value = (meta.value::int8 + 1)::text returning value::int8

-- name: backlog
-- Claims of workers that are not alive count as abandoned. The age is that of the oldest executable item.
with n as (select coalesce(?::timestamptz, clock_timestamp()) as at)
select 'effect', e.handler, count(*), count(e.owner),
    count(*) filter (where e.owner is not null and k.id is null),
    min(e.created_at) filter (where e.owner is null and e.parked_until is null and e.held_at is null)
from standfast.effects e cross join n left join standfast.workers k on k.id = e.owner and k.alive_until >= n.at group by e.handler
union all select 'timer', t.definition, count(*), count(t.claimed_until), count(*) filter (where t.claimed_until < n.at),
    min(t.due_at) filter (where t.claimed_until is null and t.held_at is null and t.frozen_at is null and t.due_at <= n.at)
from standfast.timers t cross join n group by t.definition
union all select 'inbox', i.definition, count(*), count(i.claimed_until), count(*) filter (where i.claimed_until < n.at),
    min(i.created_at) filter (where i.claimed_until is null and (i.due_at is null or i.due_at <= n.at))
from standfast.inbox i cross join n group by i.definition
order by 1, 2

-- name: given_up
select tenant, count(*) from standfast.dead_letters group by tenant order by tenant

-- name: unhandled
-- Steps from one name to the next along the index: one step per handler, however much work waits.
with recursive h (handler) as (
    (select handler from standfast.effects where owner is null and parked_until is null and held_at is null order by handler limit 1)
    union all
    select (
        select e.handler from standfast.effects e
        where e.owner is null and e.parked_until is null and e.held_at is null and e.handler > h.handler order by e.handler limit 1
    ) from h where h.handler is not null
)
select h.handler, w.waiting, w.since
from h cross join (select coalesce(?::timestamptz, clock_timestamp()) as at, ?::interval as waited, ?::int8 as most) as n
cross join lateral (
    select count(*) as waiting, min(f.created_at) as since from (
        select e.created_at from standfast.effects e
        where e.handler = h.handler and e.owner is null and e.parked_until is null and e.held_at is null and e.created_at <= n.at - n.waited
        order by e.language, e.type, e.version, e.rank limit n.most
    ) as f
) as w
where h.handler is not null and w.waiting > 0
    and not exists (select 1 from standfast.workers k where k.alive_until >= n.at and h.handler = any (k.handlers))
order by h.handler

-- name: waiting_words
-- Steps from one message type to the next along the indexes for claims.
with recursive t (language, type, version, since) as (
    (select language, type, version, due_at from standfast.timers where held_at is null order by language, type, version, due_at limit 1)
    union all
    select f.* from t cross join lateral (
        select d.language, d.type, d.version, d.due_at from standfast.timers d
        where d.held_at is null and (d.language, d.type, d.version) > (t.language, t.type, t.version)
        order by d.language, d.type, d.version, d.due_at limit 1
    ) as f
),
m (language, type, version, since) as (
    (
        select language, type, version, created_at from standfast.inbox where created_at > '-infinity'
        order by language, type, version, id limit 1
    )
    union all
    select f.* from m cross join lateral (
        select i.language, i.type, i.version, i.created_at from standfast.inbox i
        where i.created_at > '-infinity' and (i.language, i.type, i.version) > (m.language, m.type, m.version)
        order by i.language, i.type, i.version, i.id limit 1
    ) as f
),
e (handler, language, type, version, since) as (
    select f.* from unnest(?::text[]) as h (handler) cross join lateral (
        select r.handler, r.language, r.type, r.version, r.created_at from standfast.effects r
        where r.handler = h.handler and r.owner is null and r.parked_until is null and r.held_at is null
        order by r.language, r.type, r.version, r.rank limit 1
    ) as f
    union all
    select f.* from e cross join lateral (
        select r.handler, r.language, r.type, r.version, r.created_at from standfast.effects r
        where r.handler = e.handler and r.owner is null and r.parked_until is null and r.held_at is null
            and (r.language, r.type, r.version) > (e.language, e.type, e.version)
        order by r.language, r.type, r.version, r.rank limit 1
    ) as f
)
select w.kind, w.handler, w.language, w.type, w.version, greatest(w.since, '0001-01-01 00:00:00+00') from (
    select 'timer' as kind, '' as handler, t.* from t
    union all select 'inbox', '', m.* from m
    union all select 'effect', e.* from e
) as w
where w.since <= coalesce(?::timestamptz, clock_timestamp()) - ?::interval order by w.kind, w.handler, w.language, w.type, w.version
