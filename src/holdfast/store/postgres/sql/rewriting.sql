-- name: allow
select set_config('holdfast.retention', ?::text, true)

-- name: forget_snapshot
delete from holdfast.snapshots where instance = ?::uuid
