-- name: add_key
insert into standfast.api_keys (id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::bytea, ?::text, ?::timestamptz, ?::timestamptz,
    ?::timestamptz, ?::timestamptz, ?::text)

-- name: key
select id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
from standfast.api_keys where id = ?::text

-- name: keys
select id, tenant, partition, name, actor, kind, roles, capabilities, hash, created_by, created_at, expires_at, last_used_at, revoked_at, revoked_by
from standfast.api_keys where tenant = ?::text and id > ?::text order by id limit ?::int8

-- name: has_key
select exists (select 1 from standfast.api_keys where revoked_at is null and (expires_at is null or expires_at > ?::timestamptz))

-- name: revoke
update standfast.api_keys set revoked_at = ?::timestamptz, revoked_by = ?::text where tenant = ?::text and id = ?::text and revoked_at is null

-- name: note_use
update standfast.api_keys set last_used_at = ?::timestamptz where id = ?::text and (last_used_at is null or last_used_at < ?::timestamptz)

-- name: note_refusal
insert into standfast.api_refusals (tenant, actor, credential, method, path, code, detail, trace, at)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::timestamptz)

-- name: forget_refusals
delete from standfast.api_refusals where tenant = ?::text and at < ?::timestamptz

-- name: refusals
select id, tenant, actor, credential, method, path, code, detail, trace, at
from standfast.api_refusals where tenant = ?::text and id < ?::int8 order by id desc limit ?::int8

-- name: add_session
insert into standfast.api_sessions (id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::bytea, ?::text, ?::timestamptz, ?::timestamptz, ?::timestamptz, ?::timestamptz)

-- name: forget_sessions
delete from standfast.api_sessions where tenant = ?::text and expires_at < ?::timestamptz

-- name: session
select id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at
from standfast.api_sessions where id = ?::text

-- name: sessions
select id, tenant, partition, actor, kind, roles, capabilities, hash, credential, created_at, expires_at, last_used_at, ended_at
from standfast.api_sessions where tenant = ?::text and id > ?::text and (?::text = '' or actor = ?::text) order by id limit ?::bigint

-- name: end_session
update standfast.api_sessions set ended_at = ?::timestamptz where tenant = ?::text and id = ?::text and ended_at is null

-- name: note_session
update standfast.api_sessions set last_used_at = ?::timestamptz where id = ?::text and last_used_at < ?::timestamptz

-- name: end_surplus_sessions
update standfast.api_sessions set ended_at = ?::timestamptz where id in (
    select id from standfast.api_sessions where tenant = ?::text and actor = ?::text and credential = ?::text and ended_at is null and id <> ?::text
    order by created_at desc, id desc offset ?::int8)

-- name: forget_surplus_sessions
delete from standfast.api_sessions where id in (
    select id from standfast.api_sessions where tenant = ?::text and actor = ?::text and credential = ?::text and id <> ?::text
    order by created_at desc, id desc offset ?::int8)

-- name: begin_request
insert into standfast.api_requests (tenant, actor, key, mark, began_at, status, headers, body)
values (?::text, ?::text, ?::text, ?::bytea, ?::timestamptz, ?::int, ?::text, ?::bytea) on conflict (tenant, actor, key) do nothing

-- name: forget_requests
delete from standfast.api_requests where tenant = ?::text and began_at < ?::timestamptz

-- name: request
select tenant, actor, key, mark, began_at, status, headers, body from standfast.api_requests where tenant = ?::text and actor = ?::text and key = ?::text

-- name: answer_request
update standfast.api_requests set status = ?::int, headers = ?::text, body = ?::bytea
where tenant = ?::text and actor = ?::text and key = ?::text and status is null

-- name: forget_request
delete from standfast.api_requests where tenant = ?::text and actor = ?::text and key = ?::text and status is null
