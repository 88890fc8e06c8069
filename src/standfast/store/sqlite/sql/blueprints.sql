-- Document definitions. Lists omit the contents, which may be large.

-- name: add
insert into blueprints (
    id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
) values (:id, :tenant, :type, :kind, :version, :status, :is_default, :name, :envelope_version, :content, :hash, :skeleton, :header, :compiler, :graph_hash, :workflow, :envelope, :body, :replaces, :revision, :drafted_by, :comment, :created_by, :created_at, :updated_by, :updated_at, :published_by, :published_at, :archived_by, :archived_at, :archived_why);

-- name: save
update blueprints set name = :name, envelope_version = :envelope_version, content = :content, hash = :hash, replaces = :replaces,
    revision = :revision, drafted_by = :drafted_by, comment = :comment, updated_by = :updated_by, updated_at = :updated_at
where id = :id and tenant = :tenant and status = 'draft' and revision = :revision - 1;

-- name: publish
update blueprints set version = :version, status = 'published', comment = :comment, published_by = :published_by, published_at = :published_at
where id = :id and tenant = :tenant and status = 'draft' and revision = :revision;

-- name: archive
update blueprints set status = 'archived', archived_by = ?, archived_at = ?, archived_why = ? where id = ? and tenant = ? and status = 'published';

-- name: discard
delete from blueprints where id = ? and tenant = ? and status = 'draft';

-- name: retire_workflow
update definitions set status = 'retired' where tenant = ? and name = ? and version = ? and status = 'published';

-- name: own
select id, tenant, type, kind, version, status, is_default, name, envelope_version, x'' as content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from blueprints where tenant = ? and type = ? and kind = ? order by version = 0, version, id;

-- name: get
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from blueprints where id = ? and tenant in (?, '*');

-- name: version
-- A definition of the tenant takes precedence over the shared one.
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from blueprints where tenant in (?, '*') and type = ? and kind = ? and version = ? and version > 0 order by tenant = '*' limit 1;

-- name: listed
select id, tenant, type, kind, version, status, is_default, name, envelope_version, x'' as content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from blueprints where tenant in (?1, '*') and kind = ?2 and (?3 = '' or type = ?3) order by type, tenant = '*', version = 0, version, id;

-- name: in_force_everywhere
select id, tenant, type, kind, version, status, is_default, name, envelope_version, content, hash, skeleton, header, compiler, graph_hash, workflow,
    envelope, body, replaces, revision, drafted_by, comment, created_by, created_at, updated_by, updated_at, published_by, published_at, archived_by,
    archived_at, archived_why
from blueprints where type = ? and kind = 'body' and status = 'published' order by tenant;

-- name: rule
select tenant, two_person, set_by, set_at from publishing_rules where tenant = ? order by number desc limit 1;

-- name: set_rule
insert into publishing_rules (tenant, number, two_person, set_by, set_at)
values (?1, (select coalesce(max(number), 0) + 1 from publishing_rules where tenant = ?1), ?2, ?3, ?4);

-- name: suspensions
select tenant, type, workflow, is_suspended, set_by, set_at, why, batch from suspensions
where tenant = ?1 and (?2 = '' or type = ?2) order by set_at, type, workflow, number;

-- name: suspend
insert into suspensions (tenant, type, workflow, number, is_suspended, set_by, set_at, why, batch)
select :tenant, :type, :workflow,
    (select coalesce(max(s.number), 0) + 1 from suspensions s where s.tenant = :tenant and s.type = :type and s.workflow = :workflow),
    :is_suspended, :set_by, :set_at, :why, :batch
where :is_suspended <> coalesce((select s.is_suspended from suspensions s
    where s.tenant = :tenant and s.type = :type and s.workflow = :workflow order by s.number desc limit 1), 0);
