-- name: hold
-- Serializes concurrent publications.
select pg_advisory_xact_lock(hashtextextended('standfast chain ' || ?::text || ' ' || ?::text, 0))

-- name: publish
insert into standfast.chains (tenant, name, version, stages, description, published_by, published_at)
select u.tenant, u.name, (select coalesce(max(c.version), 0) + 1 from standfast.chains c where c.tenant = u.tenant and c.name = u.name),
    ?::bytea, ?::text, ?::text, ?::timestamptz
from (select ?::text as tenant, ?::text as name) as u

-- name: newest
select tenant, name, version, stages, description, published_by, published_at
from standfast.chains where tenant = ?::text and name = ?::text order by version desc limit 1

-- name: get
select tenant, name, version, stages, description, published_by, published_at
from standfast.chains where tenant = ?::text and name = ?::text and version = ?::integer

-- name: listed
select tenant, name, version, stages, description, published_by, published_at
from standfast.chains where tenant = ?::text and ?::text in ('', name) order by name, version
