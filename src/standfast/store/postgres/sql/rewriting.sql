-- name: allow
select set_config('standfast.retention', ?::text, true)

-- name: forget_snapshot
delete from standfast.snapshots where instance = ?::uuid

-- name: begin_redaction
select set_config('standfast.redaction', ?::text, true)

-- name: rewrite_event
update standfast.events set data = ?::bytea, comment = ?::text where instance = ?::uuid and sequence = ?::integer

-- name: notices
select id, subject, body from standfast.notifications where instance = ?::uuid

-- name: rewrite_notice
update standfast.notifications set subject = ?::text, body = ?::text where id = ?::bigint
