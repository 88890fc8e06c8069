-- name: publish
-- A shared definition is not published again for one tenant, because instances may be pinned to it.
insert into standfast.definitions (
    tenant, name, version, kind, source, compiled, hash, compiler, status, media_type, description, published_by, published_at
)
select u.* from (
    select ?::text as tenant, ?::text as name, ?::text as version, ?::text, ?::bytea, ?::bytea, ?::text, ?::text, ?::text, ?::text,
        ?::text, ?::text, ?::timestamptz
) as u
where not exists (select 1 from standfast.definitions d where d.tenant = '*' and d.name = u.name and d.version = u.version)
on conflict do nothing

-- name: adopt
-- Messages accepted before the publication of the definition were taken for those of a decider.
update standfast.inbox set language = '$graph' where language = ?::text and ?::text in ('*', tenant)

-- name: get
-- A definition of the tenant takes precedence over the shared one.
select tenant, name, version, kind, source, compiled, hash, compiler, status, media_type, description, published_by, published_at
from standfast.definitions where tenant in (?::text, '*') and name = ?::text and version = ?::text order by tenant = '*' limit 1

-- name: versions
select version from standfast.definitions where tenant = ?::text and name = ?::text and status = 'published' order by published_at, version

-- name: archive
update standfast.definitions
set status = ?::text, archived_by = ?::text, archived_at = ?::timestamptz, archived_why = ?::text
where tenant = ?::text and name = ?::text and version = ?::text and status in ('published', 'retired')

-- name: archived
select tenant, name, version, archived_by, archived_at, archived_why from standfast.definitions where status = 'retired' order by name, published_at, version

-- name: names
select distinct name from standfast.definitions

-- name: listed
select tenant, name, version, kind, hash, description, published_by, published_at from standfast.definitions
where tenant in (?::text, '*') and status = 'published' order by name, published_at, version

-- name: note_trigger
insert into standfast.definition_triggers (event, tenant, definition) values (?::text, ?::text, ?::text) on conflict do nothing

-- name: triggered
-- All versions of the definitions with a version that the event starts, including archived ones. The graph of the
-- newest one decides.
select tenant, name, version, kind, hash, description, published_by, published_at from standfast.definitions
where tenant in (?::text, '*')
and name in (select definition from standfast.definition_triggers where event = ?::text and tenant in (?::text, '*'))
order by name, published_at, version
