-- name: allow
select set_config('holdfast.retention', ?::text, true)

-- name: forget_snapshot
delete from holdfast.snapshots where instance = ?::uuid

-- name: begin_redaction
select set_config('holdfast.redaction', ?::text, true)

-- name: rewrite_event
update holdfast.events set data = ?::bytea, comment = ?::text where instance = ?::uuid and sequence = ?::integer

-- name: notices
select id, subject, body from holdfast.notifications where instance = ?::uuid

-- name: rewrite_notice
update holdfast.notifications set subject = ?::text, body = ?::text where id = ?::bigint
