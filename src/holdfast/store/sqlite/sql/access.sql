-- name: add_key
insert into api_keys (id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: key
select id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
from api_keys where id = ?;

-- name: keys
select id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
from api_keys where tenant = ? and id > ? order by id limit ?;

-- name: has_key
select exists (select 1 from api_keys where revoked_at is null and (expires_at is null or expires_at > ?));

-- name: revoke
update api_keys set revoked_at = ?, revoked_by = ? where tenant = ? and id = ? and revoked_at is null;

-- name: note_use
update api_keys set last_used_at = ? where id = ? and (last_used_at is null or last_used_at < ?);

-- name: note_refusal
insert into api_refusals (tenant, actor, credential, method, path, code, detail, trace, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: forget_refusals
delete from api_refusals where tenant = ? and at < ?;

-- name: refusals
select id, tenant, actor, credential, method, path, code, detail, trace, at from api_refusals where tenant = ? and id < ? order by id desc limit ?;
