-- name: instances
select id, tenant, definition, definition_version, key, status, reason, version, issued, parent, created_at, updated_at, ended_at
from instances
where tenant = :tenant
    and (:definition = '' or definition = :definition)
    and (:key = '' or key = :key)
    and (:parent is null or parent = :parent)
    and (:statuses is null or status in (select value from json_each(:statuses)))
    and (:before is null or id < :before)
order by id desc limit :limit;

-- name: events
select position, instance, sequence, tenant, type, version, data, at, actor, comment, cause
from events where instance = ? and tenant = ? and sequence > ? order by sequence limit ?;

-- name: effects
select instance, number, tenant, definition, handler, type, version, data, options, priority, rank, parked_until, owner, fence,
    attempts, error, created_at
from effects where instance = ? and tenant = ? order by number;

-- name: timers
select instance, key, number, tenant, definition, type, version, data, due_at, attempts, error
from timers where instance = ? and tenant = ? order by due_at, number;

-- name: steps
select instance, number, node, token, visit, kind, status, compensates, wait_kind, attempts, outcome, error, input, output,
    opened_at, moved_at
from steps where instance = ? and tenant = ? order by number;

-- name: tasks
select instance, number, subject, role, due_at, data, outcome, actor, comment, opened_at, closed_at
from human_tasks where instance = ? and tenant = ? order by number;

-- name: subscriptions
select instance, number, signal, correlation, expires_at, opened_at
from subscriptions where instance = ? and tenant = ? order by number;

-- name: dead_letters
select id, tenant, source, instance, definition, key, number, name, type, version, data, options, priority, attempts, fence, reason, error,
    actor, created_at
from dead_letters where tenant = :tenant and id > :after and (:instance is null or instance = :instance) order by id limit :limit;

-- name: observations
select tenant, instance, definition, input, from_status, to_status, skipped, at
from observations
where tenant = :tenant and (:definition = '' or definition = :definition) and (:instance is null or instance = :instance)
order by id;

-- name: transitions
select from_status, input, to_status, count(*) from observations where tenant = ? and definition = ? and not skipped
group by from_status, input, to_status order by from_status, input, to_status;
