-- name: clock
-- SQLite's own clock, in the width of our instants.
select strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now');

-- name: ready_effects
select instance, number, rank from effects indexed by effects_ready
where handler = ? and owner is null and parked_until is null
    and not exists (select 1 from meta where name = 'maintenance')
order by rank, instance, number limit ?;

-- name: own_effect
update effects set owner = ?, claimed_at = ?, fence = fence + 1, attempts = attempts + 1 where instance = ? and number = ?
returning instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested;

-- name: retry_effect
update effects set owner = null, claimed_at = null, parked_until = ?, error = ?
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
select instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, stop_requested
from effects indexed by effects_ready
where handler = ? and owner is null and parked_until is null and created_at <= ? order by rank, instance, number limit ?;

-- name: due_timers
update timers set claimed_until = ? where (instance, key) in (
    select instance, key from timers
    where due_at <= ? and (claimed_until is null or claimed_until <= ?) and not exists (select 1 from meta where name = 'maintenance')
        and (? is null or definition in (select value from json_each(?)))
    order by due_at limit ?
) returning instance, key, number, tenant, definition, type, version, data, due_at, attempts, error;

-- name: next_timer
select min(due_at) from timers where due_at > ?;

-- name: retry_timer
update timers set due_at = ?, attempts = attempts + 1, error = ?, claimed_until = null where instance = ? and key = ? and number = ?;

-- name: take_timer
delete from timers where instance = ? and key = ? and number = ?;

-- name: due_messages
-- A message may be taken when the first one of its target is free: those behind it come along, in order.
update inbox set claimed_until = ? where id in (
    select i.id from inbox i where not exists (select 1 from meta where name = 'maintenance') and exists (
        select 1 from inbox h
        where h.id = (select min(f.id) from inbox f where f.tenant = i.tenant and f.target = i.target)
            and (h.due_at is null or h.due_at <= ?) and (h.claimed_until is null or h.claimed_until <= ?)
            and (? is null or h.definition in (select value from json_each(?)))
    )
    order by i.id limit ?
) returning id, tenant, definition, key, instance, type, version, data, command_id, actor, comment, definition_version, parent, attempts,
    error;

-- name: retry_message
update inbox set due_at = ?, attempts = attempts + 1, error = ?, claimed_until = null where id = ?;

-- name: free_target
update inbox set claimed_until = null where (tenant, target) = (select tenant, target from inbox where id = ?);

-- name: take_message
delete from inbox where id = ?;

-- name: inbox_depth
select count(*) from inbox;

-- name: next_message
select min(due_at) from inbox where due_at > ?;
