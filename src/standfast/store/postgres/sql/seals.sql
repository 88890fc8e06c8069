-- name: hold
-- Serializes concurrent seals.
select pg_advisory_xact_lock(hashtextextended('standfast seal ' || ?::text, 0))

-- name: add
insert into standfast.seals (tenant, number, instance, version, digest, link, sealed_by, sealed_at)
values (?::text, ?::bigint, ?::uuid, ?::integer, ?::text, ?::text, ?::text, ?::timestamptz)

-- name: of
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from standfast.seals where tenant = ?::text and instance = any(?::uuid[]) order by number

-- name: listed
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from standfast.seals where tenant = ?::text and number > ?::bigint order by number limit ?::integer

-- name: last
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from standfast.seals where tenant = ?::text order by number desc limit 1
