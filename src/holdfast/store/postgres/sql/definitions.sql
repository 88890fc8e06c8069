-- name: publish
insert into holdfast.definitions (tenant, name, version, kind, source, compiled, hash, compiler, status, created_at)
values (?::text, ?::text, ?::text, ?::text, ?::bytea, ?::bytea, ?::text, ?::text, ?::text, ?::timestamptz) on conflict do nothing

-- name: get
select tenant, name, version, kind, source, compiled, hash, compiler, status, created_at
from holdfast.definitions where tenant = ?::text and name = ?::text and version = ?::text

-- name: versions
select version from holdfast.definitions where tenant = ?::text and name = ?::text order by created_at, version

-- name: names
select distinct name from holdfast.definitions where tenant = ?::text order by name
