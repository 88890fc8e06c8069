-- name: clock
-- The clock of SQLite, in the width of stored times.
select strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now');

-- name: next_effect_word
-- Steps from one waiting message type of a handler to the next along the index: to another version, type or language.
-- SQLite would use the index only for the first column if one condition compared all three.
select * from (
    select language, type, version, created_at from effects indexed by effects_ready
    where handler = :handler and owner is null and parked_until is null and held_at is null and language = :language and type = :type and version > :version
    order by version, rank limit 1
)
union all
select * from (
    select language, type, version, created_at from effects indexed by effects_ready
    where handler = :handler and owner is null and parked_until is null and held_at is null and language = :language and type > :type
    order by type, version, rank limit 1
)
union all
select * from (
    select language, type, version, created_at from effects indexed by effects_ready
    where handler = :handler and owner is null and parked_until is null and held_at is null and language > :language
    order by language, type, version, rank limit 1
)
limit 1;

-- name: waiting_handlers
-- Steps from one name to the next along the index: one step per handler, however much work waits.
with recursive h (handler) as (
    select * from (
        select handler from effects indexed by effects_ready where owner is null and parked_until is null and held_at is null order by handler limit 1
    )
    union all
    select (
        select handler from effects indexed by effects_ready
        where owner is null and parked_until is null and held_at is null and handler > h.handler order by handler limit 1
    ) from h where h.handler is not null
)
select handler from h where handler is not null;

-- name: ready_effects
select instance, number, rank from effects indexed by effects_ready
where handler = ? and language = ? and type = ? and version = ? and owner is null and parked_until is null and held_at is null
    and not exists (select 1 from meta where name = 'maintenance')
order by rank, instance, number limit ?;

-- name: own_effect
update effects set owner = ?, claimed_at = ?, fence = fence + 1, attempts = attempts + 1 where instance = ? and number = ?
returning instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context;

-- name: leave_effect
-- A claimed effect that cannot be read is released, because other processes may be able to read it.
update effects set owner = null, claimed_at = null, parked_until = ?, attempts = attempts - 1 where instance = ? and number = ?;

-- name: retry_effect
update effects set owner = null, claimed_at = null, parked_until = ?, error = ?, attempts = attempts - ?
where instance = ? and number = ? and owner = ? and fence = ?;

-- name: release_effect
update effects set owner = null, claimed_at = null, attempts = attempts - 1
where instance = ? and number = ? and owner = ? and fence = ?;

-- name: take_effect
delete from effects where instance = ? and number = ? and owner = ? and fence = ?;

-- name: wake_effects
update effects set parked_until = null where parked_until <= ? returning handler;

-- name: next_parked
select min(parked_until) from effects where parked_until is not null;

-- name: waiting_effects
select instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested, context
from effects indexed by effects_ready
where handler = ? and owner is null and parked_until is null and held_at is null and created_at <= ?
order by language, type, version, rank, instance, number limit ?;

-- name: due_words
-- The message types of due timers that the process can read.
select w.value ->> 0, w.value ->> 1, w.value ->> 2 from json_each(:words) as w
where not exists (select 1 from meta where name = 'maintenance') and exists (
    select 1 from timers t indexed by timers_due
    where t.language = w.value ->> 0 and t.type = w.value ->> 1 and t.version = w.value ->> 2 and t.held_at is null and t.due_at <= :now
);

-- name: due_timers
select due_at, instance, key, number from timers indexed by timers_due
where language = ? and type = ? and version = ? and held_at is null and due_at <= ? and (claimed_until is null or claimed_until <= ?)
order by due_at limit ?;

-- name: claim_timer
update timers set claimed_until = ? where instance = ? and key = ? and number = ?
returning instance, key, number, tenant, definition, language, type, version, data, due_at, attempts, error, context;

-- name: next_timer
select min((
    select t.due_at from timers t indexed by timers_due
    where t.language = w.value ->> 0 and t.type = w.value ->> 1 and t.version = w.value ->> 2 and t.held_at is null and t.due_at > :now
    order by t.due_at limit 1
)) from json_each(:words) as w;

-- name: retry_timer
update timers set due_at = ?, attempts = attempts + ?, error = ?, claimed_until = null where instance = ? and key = ? and number = ?;

-- name: take_timer
delete from timers where instance = ? and key = ? and number = ?;

-- name: waiting_words
-- The message types of messages that the process can read.
select w.value ->> 0, w.value ->> 1, w.value ->> 2 from json_each(:words) as w
where not exists (select 1 from meta where name = 'maintenance') and exists (
    select 1 from inbox i indexed by inbox_by_word
    where i.language = w.value ->> 0 and i.type = w.value ->> 1 and i.version = w.value ->> 2
);

-- name: heads
-- Messages of one target are claimed in order: the first one stands for those behind it.
select h.id, h.tenant, h.target from inbox h indexed by inbox_by_word
where h.language = ? and h.type = ? and h.version = ? and (h.due_at is null or h.due_at <= ?)
    and (h.claimed_until is null or h.claimed_until <= ?)
    and h.id = (select min(f.id) from inbox f where f.tenant = h.tenant and f.target = h.target)
order by h.id limit ?;

-- name: line
select id, language, type, version from inbox where tenant = ? and target = ? order by id limit ?;

-- name: claim_message
update inbox set claimed_until = ? where id = ?
returning id, tenant, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    attempts, error, context, partition;

-- name: retry_message
update inbox set due_at = ?, attempts = attempts + ?, error = ?, claimed_until = null where id = ?;

-- name: free_target
update inbox set claimed_until = null where (tenant, target) = (select tenant, target from inbox where id = ?);

-- name: take_message
delete from inbox where id = ?;

-- name: waiting_messages
select id, tenant, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    attempts, error, context, partition
from inbox
where id > :after and tenant = :tenant and (:partition = '' or partition = :partition)
    and (:definition = '' or definition = :definition) and (:type = '' or type = :type)
order by id limit :limit;

-- name: inbox_depth
select count(*) from inbox;

-- name: next_message
select min(due_at) from inbox where due_at > ?;
