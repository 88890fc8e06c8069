-- name: open_step
insert into steps (
    instance, number, tenant, node, token, visit, kind, status, compensates, retry_of, wait_kind, attempts, outcome, error, input,
    output, opened_at, moved_at
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_step
-- A step began with its first call.
update steps set
    status = ?, attempts = coalesce(?, attempts), output = coalesce(?, output), error = coalesce(?, error),
    outcome = coalesce(?, outcome), wait_kind = coalesce(?, wait_kind),
    started_at = case when attempts = 0 then coalesce(?, started_at) else started_at end, moved_at = ?
where instance = ? and number = ?;

-- name: open_task
insert into human_tasks (instance, number, tenant, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: close_task
update human_tasks set outcome = ?, actor = ?, comment = ?, closed_at = ? where instance = ? and number = ?;

-- name: raise_letter
insert into dead_letters (
    tenant, source, instance, definition, key, number, name, language, type, version, data, options, priority, attempts, fence, reason,
    error, actor, definition_version, parent, command_id, comment, created_at, context
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: settle_letter
delete from dead_letters where instance = ? and source = ? and number = ?;

-- name: open_subscription
insert into subscriptions (instance, number, tenant, signal, correlation, expires_at, opened_at) values (?, ?, ?, ?, ?, ?, ?);

-- name: close_subscription
delete from subscriptions where instance = ? and number = ?;
