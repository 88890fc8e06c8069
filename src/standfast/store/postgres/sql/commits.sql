-- The parts of a commit. The parts that a commit needs are sent together, as one round trip and one implicit
-- transaction. Every part takes its rows as columns. For a few rows, `unnest` of arrays is replaced by plain values.
--
-- Rows are found by `= any (array[...])`, here and in the other files, where `=` would be equivalent. With `=` the
-- planner could scan the whole table and look up every row among the given ones. It prefers that for a queue that was
-- empty at its last analysis, and keeps the plan for thousands of rows.

-- name: born
insert into standfast.instances (
    id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, commits, parent, ended_at, partition,
    started_by, paused_at, deadline_at, attributes, next_step, created_at, updated_at
)
select u.id, u.tenant, u.definition, u.definition_version, u.kind, u.key, u.status, u.reason, u.begun, u.version, u.issued, u.commits, u.parent,
    u.ended_at, u.partition, u.started_by, u.paused_at, u.deadline_at, u.attributes::jsonb, u.next_step, t.at, t.at
from unnest(
    ?::uuid[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bool[], ?::int4[], ?::int4[], ?::int4[], ?::uuid[],
    ?::timestamptz[], ?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[], ?::text[], ?::text[]
) as u (
    id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, commits, parent, ended_at, partition,
    started_by, paused_at, deadline_at, attributes, next_step
), (select ?::timestamptz as at) as t

-- name: moved
-- The version gate: the row changes only if it is unchanged since it was read.
update standfast.instances i
set status = u.status, reason = u.reason, begun = u.begun, version = u.version, issued = u.issued, commits = u.commits, ended_at = u.ended_at,
    updated_at = t.at
from unnest(
    ?::uuid[], ?::text[], ?::int4[], ?::text[], ?::text[], ?::bool[], ?::int4[], ?::int4[], ?::int4[], ?::timestamptz[]
) as u (id, tenant, expected, status, reason, begun, version, issued, commits, ended_at), (select ?::timestamptz as at) as t
where i.id = any (array[u.id]) and i.tenant = u.tenant and i.version = u.expected
returning 1

-- name: marked
-- Rarely changed columns are written beside the gate, which locks the row, so that common commits do not pay for them.
update standfast.instances i
set paused_at = u.paused_at, deadline_at = u.deadline_at, attributes = u.attributes::jsonb, next_step = u.next_step
from unnest(
    ?::uuid[], ?::timestamptz[], ?::timestamptz[], ?::text[], ?::text[]
) as u (id, paused_at, deadline_at, attributes, next_step)
where i.id = any (array[u.id])

-- name: consumed_effects
delete from standfast.effects e using unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner = u.owner and e.fence = u.fence
returning 1

-- name: consumed_timers
delete from standfast.timers t using unnest(?::uuid[], ?::text[], ?::int4[]) as u (instance, key, number)
where t.instance = any (array[u.instance]) and t.key = u.key and t.number = u.number
returning 1

-- name: consumed_messages
delete from standfast.inbox where id = any (?::int8[]) returning 1

-- name: consumed_letters
delete from standfast.dead_letters where id = any (?::int8[]) returning 1

-- name: finished_letters
delete from standfast.dead_letters where id = any (?::int8[])

-- name: finished_timers
delete from standfast.timers t using unnest(?::uuid[], ?::text[], ?::int4[]) as u (instance, key, number)
where t.instance = any (array[u.instance]) and t.key = u.key and t.number = u.number

-- name: finished_messages
delete from standfast.inbox where id = any (?::int8[])

-- name: finished_effects
delete from standfast.effects e using unnest(?::uuid[], ?::int4[], ?::uuid[], ?::int4[]) as u (instance, number, owner, fence)
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner = u.owner and e.fence = u.fence

-- name: withdrawn
delete from standfast.effects e using unnest(?::uuid[], ?::int4[]) as u (instance, number)
where e.instance = any (array[u.instance]) and e.number = u.number

-- name: withdrawn_letters
-- A dead-lettered effect is withdrawn like a pending one. `withdrawn` has waited for one that is being dead-lettered.
delete from standfast.dead_letters d using unnest(?::uuid[], ?::int4[]) as u (instance, number)
where d.instance = any (array[u.instance]) and d.source = 'effect' and d.number = u.number

-- name: recalled
-- Effects without an owner have not begun. The statement waits for a concurrent claim: if that commits, the row has an
-- owner and stays. The instances of recalled effects get a message.
with taken as (
    delete from standfast.effects e using unnest(?::uuid[], ?::int4[]) with ordinality as u (instance, number, place)
    where e.instance = any (array[u.instance]) and e.number = u.number and e.owner is null
    returning u.place
)
insert into standfast.inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
)
select u.tenant, u.target, u.definition, u.key, u.instance, u.language, u.type, u.version, u.data, u.command_id, u.actor, u.comment,
    u.definition_version, u.parent, u.context, u.partition, t.at
from unnest(
    ?::text[], ?::text[], ?::text[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::text[], ?::text[], ?::text[],
    ?::text[], ?::uuid[], ?::bytea[], ?::text[]
) with ordinality as u (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, place
) join taken on taken.place = u.place, (select ?::timestamptz as at) as t
order by u.place

-- name: recalled_letters
-- The same for dead letters.
with taken as (
    delete from standfast.dead_letters d using unnest(?::uuid[], ?::int4[]) with ordinality as u (instance, number, place)
    where d.instance = any (array[u.instance]) and d.source = 'effect' and d.number = u.number
    returning u.place
)
insert into standfast.inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
)
select u.tenant, u.target, u.definition, u.key, u.instance, u.language, u.type, u.version, u.data, u.command_id, u.actor, u.comment,
    u.definition_version, u.parent, u.context, u.partition, t.at
from unnest(
    ?::text[], ?::text[], ?::text[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::text[], ?::text[], ?::text[],
    ?::text[], ?::uuid[], ?::bytea[], ?::text[]
) with ordinality as u (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, place
) join taken on taken.place = u.place, (select ?::timestamptz as at) as t
order by u.place

-- name: stopped
-- Runs after the recall of effects without an owner. The remaining ones have an owner, or have just been released. The
-- next owner gets the request with the effect.
update standfast.effects e set stop_requested = true from unnest(?::uuid[], ?::int4[]) as u (instance, number)
where e.instance = any (array[u.instance]) and e.number = u.number and e.owner is not null

-- name: cancelled
delete from standfast.timers t using unnest(?::uuid[], ?::text[]) as u (instance, key)
where t.instance = any (array[u.instance]) and t.key = u.key
returning 1

-- name: events
-- The order of all events: the number of the transaction, and the place of the event within it. Readers stop below the
-- oldest running transaction. A transaction that is older than the last commit of one of its instances is placed after
-- that commit, up to a floor.
with tx as materialized (select greatest((?::int8 + pg_current_xact_id()::text::int8) << 20, ?::int8) as base)
insert into standfast.events (instance, sequence, position, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace)
select u.instance, u.sequence, tx.base + u.place, u.tenant, u.type, u.version, u.data, t.at, u.actor, u.comment, u.cause,
    u.on_behalf_of, u.trace
from unnest(
    ?::uuid[], ?::int4[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[]
) with ordinality as u (instance, sequence, tenant, type, version, data, actor, comment, cause, on_behalf_of, trace, place),
    tx, (select ?::timestamptz as at) as t

-- name: effects
-- An effect handed over to a worker is claimed by it at this moment.
insert into standfast.effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, context, error, created_at, claimed_at
)
select u.*, '', t.at, case when u.owner is null then null else t.at end from unnest(
    ?::uuid[], ?::int4[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::bytea[], ?::int4[], ?::int8[],
    ?::timestamptz[], ?::uuid[], ?::int4[], ?::int4[], ?::bytea[]
) as u (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, context
), (select ?::timestamptz as at) as t

-- name: timers
insert into standfast.timers (instance, key, number, tenant, definition, language, type, version, data, due_at, context, attempts, error)
select u.*, 0, '' from unnest(
    ?::uuid[], ?::text[], ?::int4[], ?::text[], ?::text[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::timestamptz[], ?::bytea[]
) as u

-- name: held_effects
-- A separate statement, so that work without a pause does not pay for it.
update standfast.effects e set held_at = t.at from unnest(?::uuid[], ?::int4[]) as u (instance, number), (select ?::timestamptz as at) as t
where e.instance = any (array[u.instance]) and e.number = u.number

-- name: held_timers
update standfast.timers t set held_at = n.at, frozen_at = case when u.is_frozen then n.at end
from unnest(?::uuid[], ?::text[], ?::bool[]) as u (instance, key, is_frozen), (select ?::timestamptz as at) as n
where t.instance = any (array[u.instance]) and t.key = u.key

-- name: messages
insert into standfast.inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
)
select u.*, t.at from unnest(
    ?::text[], ?::text[], ?::text[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::text[], ?::text[], ?::text[],
    ?::text[], ?::uuid[], ?::bytea[], ?::text[]
) as u, (select ?::timestamptz as at) as t
returning id

-- name: message_here
-- Inserts only into the intended database, through a connection of the caller.
insert into standfast.inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
)
select ?::text, ?::text, ?::text, ?::text, ?::uuid, ?::text, ?::text, ?::int4, ?::bytea, ?::text, ?::text, ?::text, ?::text, ?::uuid,
    ?::bytea, ?::text, ?::timestamptz
where exists (select 1 from standfast.meta where name = 'identity' and value = ?::text)
returning id

-- name: receipts
insert into standfast.receipts (tenant, scope, key, instance, version, digest, created_at)
select u.*, t.at from unnest(
    ?::text[], ?::text[], ?::text[], ?::uuid[], ?::int4[], ?::bytea[]
) as u, (select ?::timestamptz as at) as t

-- name: snapshots
insert into standfast.snapshots (instance, tenant, version, state_version, data, fingerprint)
select * from unnest(?::uuid[], ?::text[], ?::int4[], ?::int4[], ?::bytea[], ?::text[]) as u
on conflict (instance) do update set
    version = excluded.version, state_version = excluded.state_version, data = excluded.data, fingerprint = excluded.fingerprint

-- name: observations
insert into standfast.observations (tenant, instance, definition, input, from_status, to_status, skipped, at)
select * from unnest(
    ?::text[], ?::uuid[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bool[], ?::timestamptz[]
) as u

-- name: raised_letters
insert into standfast.dead_letters (
    tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence, reason,
    error, actor, definition_version, parent, command_id, comment, created_at, context, partition
)
select * from unnest(
    ?::text[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::int4[], ?::text[], ?::text[], ?::text[], ?::int4[], ?::bytea[], ?::bytea[],
    ?::int4[], ?::int4[], ?::int4[], ?::text[], ?::text[], ?::text[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::timestamptz[],
    ?::bytea[], ?::text[]
) as u

-- name: gates
-- The facts of decisions must still be the newest. A missing version counts as 0.
select standfast.require_facts(not exists (
    select 1 from unnest(
        ?::text[], ?::text[], ?::int8[], ?::text[], ?::text[], ?::text[]
    ) as u (kind, tenant, version, partition, definition, key)
    where u.version <> coalesce(
        case when u.kind = 'instance' then (
            select i.version::int8 from standfast.instances i where i.tenant = u.tenant and i.key = u.key and i.definition = u.definition
                and (case when i.partition is null then '' else i.partition end) = u.partition
        ) else (
            select f.version from standfast.fact_versions f where f.tenant = u.tenant and f.kind = u.kind
        ) end, 0)
))
