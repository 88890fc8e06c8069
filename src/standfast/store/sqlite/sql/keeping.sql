-- name: dead_letter
select id, tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence,
    reason, error, actor, definition_version, parent, command_id, comment, created_at, context, partition
from dead_letters where id = ? and tenant = ?;

-- name: discard
delete from dead_letters where id = ? and tenant = ?;

-- name: revive_effect
insert into effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, context
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null, null, ?, 0, '', ?, ?);

-- name: finished
select 1 from instances where id = ? and tenant = ? and ended_at is not null
    and not exists (select 1 from instances child where child.parent = instances.id and child.ended_at is null);

-- name: part_of
-- The saga or document that the instance is a part of, while it may still compensate it: the parent, or the whole that
-- a completed parent is a part of.
with recursive wholes (id, parent, status, ended_at) as (
    select p.id, p.parent, p.status, p.ended_at from instances i join instances p on p.id = i.parent
    where i.id = ? and p.kind in ('saga', 'envelope')
    union all
    select p.id, p.parent, p.status, p.ended_at from wholes w join instances p on p.id = w.parent
    where w.status = 'completed' and p.kind in ('saga', 'envelope')
)
select w.id from wholes w
where w.ended_at is null or exists (select 1 from dead_letters d where d.instance = w.id and d.source = 'compensation') limit 1;

-- name: remains
-- What still needs an ended instance.
select
    (select count(*) from effects where instance = i.id),
    (select count(*) from dead_letters where instance = i.id),
    (
        select count(*) from inbox where tenant = i.tenant
            and target in (i.id, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    ),
    (
        select json_group_array(p.name) from projections p
        where p.position < (select e.position from events e where e.instance = i.id and e.sequence = i.version)
    )
from instances i where i.id = ?;

-- name: allow
insert into retention (instance) values (?);

-- name: disallow
delete from retention where instance = ?;

-- name: delete_events
delete from events where instance = ?;

-- name: delete_instance
delete from instances where id = ?;

-- name: delete_snapshot
delete from snapshots where instance = ?;

-- name: delete_effects
delete from effects where instance = ?;

-- name: delete_timers
delete from timers where instance = ?;

-- name: delete_messages
delete from inbox where instance = ?;

-- name: delete_letters
delete from dead_letters where instance = ?;

-- name: delete_observations
delete from observations where instance = ?;

-- name: delete_notification_reads
delete from notification_reads where notification in (select n.id from notifications n where n.instance = ?);

-- name: delete_notifications
delete from notifications where instance = ?;

-- name: prune_receipts
-- Receipts of open documents are kept at any age, because a repeated call must not take effect again.
delete from receipts where (tenant, scope, key) in (
    select r.tenant, r.scope, r.key from receipts r where r.created_at < ? and not exists (
        select 1 from instances i where i.id = r.instance and i.kind = 'envelope' and i.ended_at is null
    ) limit ?
);

-- name: old_steps
select instance, number, input, output, status in ('completed', 'failed', 'skipped', 'cancelled') and moved_at < ? from steps
where (instance, number) > (?, ?) and instance < ? order by instance, number limit ?;

-- name: pack_step
update steps set input = ?, output = ? where instance = ? and number = ? and input is ? and output is ?;

-- name: expired
-- Ended instances without work, dead letters, messages, active children, or a saga or document that may compensate
-- them, whose last event all projections have read. Instances that ended after the first unread event are not examined.
select i.tenant, i.id from instances i indexed by instances_by_end
where i.ended_at < min(:before, coalesce((
        select e.at from events e where e.position > (select min(position) from projections) order by e.position limit 1
    ), :before))
    and not exists (select 1 from instances c where c.parent = i.id and c.ended_at is null)
    and not exists (
        with recursive wholes (id, parent, status, ended_at) as (
            select p.id, p.parent, p.status, p.ended_at from instances p where p.id = i.parent and p.kind in ('saga', 'envelope')
            union all
            select p.id, p.parent, p.status, p.ended_at from wholes w join instances p on p.id = w.parent
            where w.status = 'completed' and p.kind in ('saga', 'envelope')
        )
        select 1 from wholes w
        where w.ended_at is null or exists (select 1 from dead_letters d where d.instance = w.id and d.source = 'compensation')
    )
    and not exists (select 1 from effects e where e.instance = i.id)
    and not exists (select 1 from dead_letters d where d.instance = i.id)
    and not exists (
        select 1 from inbox m where m.tenant = i.tenant
            and m.target in (i.id, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (
        select 1 from events e
        where e.instance = i.id and e.sequence = i.version and e.position > (select min(position) from projections)
    )
order by i.ended_at limit :limit;

-- name: expired_events
-- The same for published events, along their own index.
select i.tenant, i.id from instances i indexed by instances_events_by_end
where i.kind = 'event' and i.ended_at < min(:before, coalesce((
        select e.at from events e where e.position > (select min(position) from projections) order by e.position limit 1
    ), :before))
    and not exists (select 1 from instances c where c.parent = i.id and c.ended_at is null)
    and not exists (select 1 from effects e where e.instance = i.id)
    and not exists (select 1 from dead_letters d where d.instance = i.id)
    and not exists (
        select 1 from inbox m where m.tenant = i.tenant
            and m.target in (i.id, case when i.partition is null then '' else replace(replace(i.partition, '%', '%25'), ':', '%3A') || '%/' end
                || replace(replace(i.definition, '%', '%25'), ':', '%3A') || ':' || i.key)
    )
    and not exists (
        select 1 from events e
        where e.instance = i.id and e.sequence = i.version and e.position > (select min(position) from projections)
    )
order by i.ended_at limit :limit;

-- name: late_readers
select p.name from projections p where :before > (
    select e.at from events e where e.position > p.position order by e.position limit 1
) order by p.name;

-- name: set_maintenance
insert into meta (name, value) values ('maintenance', ?) on conflict (name) do update set value = excluded.value;

-- name: end_maintenance
delete from meta where name = 'maintenance';

-- name: note
insert into meta (name, value) values ('note:' || ?, ?) on conflict (name) do update set value = excluded.value;

-- name: forget
delete from meta where name = 'note:' || ?;

-- name: noted
select value from meta where name = 'note:' || ?;

-- name: receipted
select r.tenant, r.scope, r.key, r.instance, r.version, r.digest
from json_each(:scopes) as s cross join receipts r on r.tenant = :tenant and r.scope = s.value;

-- name: next_number
insert into meta (name, value) values ('counter:' || ?, '0')
on conflict (name) do update set value = cast(value as integer) + 1 returning cast(value as integer);

-- name: backlog
-- Claims of workers that are not alive count as abandoned. The age is that of the oldest executable item.
select 'effect', handler, count(*), count(owner),
    sum(owner is not null and owner not in (select id from workers where alive_until >= :now)),
    min(case when owner is null and parked_until is null and held_at is null then created_at end)
from effects group by handler
union all select 'timer', definition, count(*), count(claimed_until), coalesce(sum(claimed_until < :now), 0),
    min(case when claimed_until is null and held_at is null and frozen_at is null and due_at <= :now then due_at end)
from timers group by definition
union all select 'inbox', definition, count(*), count(claimed_until), coalesce(sum(claimed_until < :now), 0),
    min(case when claimed_until is null and (due_at is null or due_at <= :now) then created_at end)
from inbox group by definition
order by 1, 2;

-- name: given_up
select tenant, count(*) from dead_letters group by tenant order by tenant;

-- name: waiting_work
select count(*), min(created_at) from (
    select created_at from effects indexed by effects_ready
    where handler = ? and owner is null and parked_until is null and held_at is null and created_at <= ?
    order by language, type, version, rank limit ?
);

-- name: next_timer_word
-- Steps from one message type to the next along the index, like `next_effect_word`.
select * from (
    select language, type, version, due_at from timers indexed by timers_due
    where held_at is null and language = :language and type = :type and version > :version order by version, due_at limit 1
)
union all
select * from (
    select language, type, version, due_at from timers indexed by timers_due
    where held_at is null and language = :language and type > :type order by type, version, due_at limit 1
)
union all
select * from (
    select language, type, version, due_at from timers indexed by timers_due
    where held_at is null and language > :language order by language, type, version, due_at limit 1
)
limit 1;

-- name: next_message_word
select * from (
    select language, type, version, created_at from inbox indexed by inbox_by_word
    where language = :language and type = :type and version > :version order by version, id limit 1
)
union all
select * from (
    select language, type, version, created_at from inbox indexed by inbox_by_word
    where language = :language and type > :type order by type, version, id limit 1
)
union all
select * from (
    select language, type, version, created_at from inbox indexed by inbox_by_word
    where language > :language order by language, type, version, id limit 1
)
limit 1;
