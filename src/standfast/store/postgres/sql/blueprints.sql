-- Document definitions. Lists omit the contents, which may be large.

-- name: hold
-- Serializes concurrent changes of the same type.
select pg_advisory_xact_lock(hashtextextended('standfast blueprints ' || ?::text || ' ' || ?::text, 0))

-- name: add
insert into standfast.blueprints (
    id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
) values (?::text, ?::text, ?::text, ?::text, ?::integer, ?::text, ?::boolean, ?::text, ?::integer, ?::bytea, ?::text, ?::bytea, ?::bytea, ?::text, ?::text, ?::text, ?::text, ?::text, ?::integer, ?::integer, ?::text, ?::text, ?::text, ?::timestamptz, ?::text, ?::timestamptz, ?::text, ?::timestamptz, ?::text, ?::timestamptz, ?::text)

-- name: save
update standfast.blueprints set name = ?::text, envelope_version = ?::integer, content = ?::bytea, hash = ?::text, replaces = ?::integer,
    revision = revision + 1, drafted_by = ?::text, comment = ?::text, updated_by = ?::text, updated_at = ?::timestamptz
where id = ?::text and tenant = ?::text and status = 'draft' and revision = ?::integer

-- name: publish
update standfast.blueprints set version = ?::integer, status = 'published', comment = ?::text, published_by = ?::text, published_at = ?::timestamptz
where id = ?::text and tenant = ?::text and status = 'draft' and revision = ?::integer

-- name: archive
update standfast.blueprints set status = 'archived', archived_by = ?::text, archived_at = ?::timestamptz, archived_why = ?::text
where id = ?::text and tenant = ?::text and status = 'published'

-- name: discard
delete from standfast.blueprints where id = ?::text and tenant = ?::text and status = 'draft'

-- name: retire_workflow
update standfast.definitions set status = 'retired' where tenant = ?::text and name = ?::text and version = ?::text and status = 'published'

-- name: own
select id, tenant, type, kind, version, status, is_default, name, envelope_version, ''::bytea as content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from standfast.blueprints where tenant = ?::text and type = ?::text and kind = ?::text order by version = 0, version, id

-- name: get
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from standfast.blueprints where id = ?::text and tenant in (?::text, '*')

-- name: version
-- A definition of the tenant takes precedence over the shared one.
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from standfast.blueprints where tenant in (?::text, '*') and type = ?::text and kind = ?::text and version = ?::integer and version > 0
order by tenant = '*' limit 1

-- name: listed
select id, tenant, type, kind, version, status, is_default, name, envelope_version, ''::bytea as content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from standfast.blueprints where tenant in (?::text, '*') and kind = ?::text and ?::text in ('', type) order by type, tenant = '*', version = 0, version, id

-- name: in_force_everywhere
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from standfast.blueprints where type = ?::text and kind = 'body' and status = 'published' order by tenant

-- name: rule
select tenant, two_person, set_by, set_at from standfast.publishing_rules where tenant = ?::text order by number desc limit 1

-- name: set_rule
insert into standfast.publishing_rules (tenant, number, two_person, set_by, set_at)
select u.tenant, (select coalesce(max(r.number), 0) + 1 from standfast.publishing_rules r where r.tenant = u.tenant),
    ?::boolean, ?::text, ?::timestamptz
from (select ?::text as tenant) as u

-- name: suspensions
select tenant, type, workflow, is_suspended, set_by, set_at, why, batch from standfast.suspensions
where tenant = ?::text and ?::text in ('', type) order by set_at, type, workflow, number

-- name: suspend
insert into standfast.suspensions (tenant, type, workflow, number, is_suspended, set_by, set_at, why, batch)
select u.tenant, u.type, u.workflow,
    (select coalesce(max(s.number), 0) + 1 from standfast.suspensions s where s.tenant = u.tenant and s.type = u.type and s.workflow = u.workflow),
    u.is_suspended, ?::text, ?::timestamptz, ?::text, ?::text
from (select ?::text as tenant, ?::text as type, ?::text as workflow, ?::boolean as is_suspended) as u
where u.is_suspended <> coalesce((select s.is_suspended from standfast.suspensions s
    where s.tenant = u.tenant and s.type = u.type and s.workflow = u.workflow order by s.number desc limit 1), false)
