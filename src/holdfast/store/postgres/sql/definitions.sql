-- name: publish
insert into holdfast.definitions (tenant, name, version, kind, source, compiled, hash, compiler, status, created_at)
values (?::text, ?::text, ?::text, ?::text, ?::bytea, ?::bytea, ?::text, ?::text, ?::text, ?::timestamptz) on conflict do nothing

-- name: adopt
-- Messages that were accepted before the definition was published were taken for those of a decider.
update holdfast.inbox set language = '$graph' where language = ?::text and ?::text in ('*', tenant)

-- name: get
select tenant, name, version, kind, source, compiled, hash, compiler, status, created_at
from holdfast.definitions where tenant = ?::text and name = ?::text and version = ?::text

-- name: versions
select version from holdfast.definitions where tenant = ?::text and name = ?::text order by created_at, version

-- name: listed
select name, version, kind, hash, created_at from holdfast.definitions
where tenant = ?::text and status = 'published' order by name, created_at, version
