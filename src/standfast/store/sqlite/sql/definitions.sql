-- name: publish
-- A shared definition is not published again for one tenant, because instances may be pinned to it.
insert into definitions (
    tenant, name, version, kind, source, compiled, hash, compiler, status, media_type, description, published_by, published_at
)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
where not exists (select 1 from definitions where tenant = '*' and name = ?2 and version = ?3)
on conflict do nothing;

-- name: adopt
-- Messages accepted before the publication of the definition were taken for those of a decider.
update inbox set language = '$graph' where language = ? and ? in ('*', tenant);

-- name: get
-- A definition of the tenant takes precedence over the shared one.
select tenant, name, version, kind, source, compiled, hash, compiler, status, media_type, description, published_by, published_at
from definitions where tenant in (?, '*') and name = ? and version = ? order by tenant = '*' limit 1;

-- name: versions
select version from definitions where tenant = ? and name = ? and status = 'published' order by published_at, version;

-- name: archive
update definitions set status = ?, archived_by = ?, archived_at = ?, archived_why = ?
where tenant = ? and name = ? and version = ? and status in ('published', 'retired');

-- name: archived
select tenant, name, version, archived_by, archived_at, archived_why from definitions where status = 'retired' order by name, published_at, version;

-- name: names
select distinct name from definitions;

-- name: listed
select tenant, name, version, kind, hash, description, published_by, published_at from definitions
where tenant in (?, '*') and status = 'published' order by name, published_at, version;

-- name: note_trigger
insert into definition_triggers (event, tenant, definition) values (?, ?, ?) on conflict do nothing;

-- name: triggered
-- All versions of the definitions with a version that the event starts, including archived ones. The graph of the
-- newest one decides.
select tenant, name, version, kind, hash, description, published_by, published_at from definitions
where tenant in (:tenant, '*')
and name in (select definition from definition_triggers where event = :event and tenant in (:tenant, '*'))
order by name, published_at, version;
