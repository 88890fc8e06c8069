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

-- name: add_session
insert into api_sessions (id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: forget_sessions
delete from api_sessions where tenant = ? and expires_at < ?;

-- name: session
select id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at
from api_sessions where id = ?;

-- name: sessions
select id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at
from api_sessions where tenant = ? and id > ? and (? = '' or actor = ?) order by id limit ?;

-- name: end_session
update api_sessions set ended_at = ? where tenant = ? and id = ? and ended_at is null;

-- name: note_session
update api_sessions set last_used_at = ? where id = ? and last_used_at < ?;

-- name: end_surplus_sessions
update api_sessions set ended_at = ? where id in (
    select id from api_sessions where tenant = ? and actor = ? and credential = ? and ended_at is null and id <> ?
    order by created_at desc, id desc limit -1 offset ?);

-- name: forget_surplus_sessions
delete from api_sessions where id in (
    select id from api_sessions where tenant = ? and actor = ? and credential = ? and id <> ?
    order by created_at desc, id desc limit -1 offset ?);

-- name: begin_request
insert into api_requests (tenant, actor, key, mark, began_at, status, headers, body)
values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (tenant, actor, key) do nothing;

-- name: forget_requests
delete from api_requests where tenant = ? and began_at < ?;

-- name: request
select tenant, actor, key, mark, began_at, status, headers, body from api_requests where tenant = ? and actor = ? and key = ?;

-- name: answer_request
update api_requests set status = ?, headers = ?, body = ?
where tenant = ? and actor = ? and key = ? and status is null;

-- name: forget_request
delete from api_requests where tenant = ? and actor = ? and key = ? and status is null;
