-- name: effect_is_held
select 1 from effects where instance = ? and number = ? and owner = ? and fence = ?;

-- name: timer_is_set
select 1 from timers where instance = ? and key = ? and number = ?;

-- name: message_is_there
select 1 from inbox where id = ?;

-- name: letter_is_there
select 1 from dead_letters where id = ?;

-- name: receipt
select instance, version, digest from receipts where tenant = ? and scope = ? and key = ?;

-- name: cause_is_known
select 1 from events where instance = ? and cause = ? limit 1;

-- name: insert_instance
insert into instances (
    id, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, commits, parent, created_at, updated_at, ended_at,
    partition, started_by, paused_at, deadline_at, attributes, next_step
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_instance
-- The version gate of a commit: the row changes only if it is unchanged since it was read.
update instances set status = ?, reason = ?, begun = ?, version = ?, issued = ?, commits = ?, updated_at = ?, ended_at = ?
where id = ? and tenant = ? and version = ?;

-- name: touch_instance
-- The same for a row with an unchanged status. SQLite counts a named column as changed and rewrites its indexes.
update instances set version = ?, issued = ?, commits = ?, updated_at = ? where id = ? and tenant = ? and version = ?;

-- name: mark_instance
-- Rarely changed columns are written beside the gate, so that common commits do not pay for them.
update instances set paused_at = ?, deadline_at = ?, attributes = ?, next_step = ? where id = ?;

-- name: insert_event
insert into events (instance, sequence, tenant, type, version, data, at, actor, comment, cause, on_behalf_of, trace)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_effect
insert into effects (
    instance, number, tenant, definition, language, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at, claimed_at, context
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: consume_effect
delete from effects where instance = ? and number = ? and owner = ? and fence = ?;

-- name: withdraw_effect
delete from effects where instance = ? and number = ?;

-- name: withdraw_letter
-- A dead-lettered effect is withdrawn like a pending one.
delete from dead_letters where instance = ? and source = 'effect' and number = ?;

-- name: recall_effect
-- An effect without an owner has not begun. That includes one parked after a failed attempt.
delete from effects where instance = ? and number = ? and owner is null;

-- name: stop_effect
update effects set stop_requested = 1 where instance = ? and number = ?;

-- name: owned_effects
select instance, number, fence from effects where owner = ?;

-- name: free_effect
update effects set owner = null, claimed_at = null, fence = fence + 1, attempts = attempts - 1
where instance = ? and number = ? and fence = ?;

-- name: set_timer
insert into timers (instance, key, number, tenant, definition, language, type, version, data, due_at, attempts, error, context)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?);

-- name: hold_effect
-- A separate statement, so that work without a pause does not pay for it.
update effects set held_at = ? where instance = ? and number = ?;

-- name: hold_timer
update timers set held_at = ?, frozen_at = ? where instance = ? and key = ?;

-- name: cancel_timer
delete from timers where instance = ? and key = ?;

-- name: consume_timer
delete from timers where instance = ? and key = ? and number = ?;

-- name: insert_message
insert into inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_message_here
-- Inserts only into the intended database. One statement, because a preceding read would use a snapshot from before the
-- write lock.
insert into inbox (
    tenant, target, definition, key, instance, language, type, version, data, command_id, actor, comment, definition_version, parent,
    context, partition, created_at
) select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? where exists (select 1 from meta where name = 'identity' and value = ?);

-- name: consume_message
delete from inbox where id = ?;

-- name: consume_letter
delete from dead_letters where id = ?;

-- name: insert_receipt
insert into receipts (tenant, scope, key, instance, version, digest, created_at) values (?, ?, ?, ?, ?, ?, ?);

-- name: save_snapshot
insert or replace into snapshots (instance, tenant, version, state_version, data, fingerprint) values (?, ?, ?, ?, ?, ?);

-- name: insert_observation
insert into observations (tenant, instance, definition, input, from_status, to_status, skipped, at)
values (?, ?, ?, ?, ?, ?, ?, ?);
