-- Documents: one, and lists of a type, newest first, each with its index.

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.type = :type and d.id = :id and d.partition = :partition;

-- name: documents_of_type
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and (:partition = '' or d.partition = :partition) and d.type = :type and d.instance < :before
order by d.instance desc limit :limit;

-- name: documents_of_status
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.type = :type and d.status = :status and d.instance < :before
    and (:partition = '' or d.partition = :partition)
    and (:requester = '' or d.requester = :requester)
order by d.instance desc limit :limit;

-- name: documents_of_requester
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.requester = :requester and d.type = :type and d.instance < :before
    and (:partition = '' or d.partition = :partition)
order by d.instance desc limit :limit;

-- name: in_force
-- A definition of the tenant takes precedence over a shared one, even if all its versions are archived. The published
-- version is the newest: publishing archives the previous one for good.
select workflow, status, tenant = '*', version, coalesce((select s.is_suspended from suspensions s
    where s.tenant = :tenant and s.type = :type and s.workflow = b.workflow order by s.number desc limit 1), 0)
from (
    select * from (select tenant, workflow, status, version from blueprints
        where tenant = :tenant and type = :type and kind = 'effective' and version > 0 order by version desc limit 1)
    union all
    select * from (select tenant, workflow, status, version from blueprints
        where tenant = '*' and type = :type and kind = 'effective' and version > 0 order by version desc limit 1)
) b order by tenant = '*' limit 1;

-- name: stand_in
-- The newest earlier version that is not suspended. The bare workflow of a contract does not replace that of a body.
select workflow from blueprints b where tenant = :owner and type = :type and kind = 'effective' and version > 0 and version < :version
    and (b.body is not null or not exists (select 1 from blueprints f
        where f.tenant = :owner and f.type = :type and f.kind = 'effective' and f.version = :version and f.body is not null))
    and not coalesce((select s.is_suspended from suspensions s
        where s.tenant = :tenant and s.type = :type and s.workflow = b.workflow order by s.number desc limit 1), 0)
order by version desc limit 1;

-- name: touched_by
select i.value from json_each(:instances) as i
where (
        exists (
            select 1 from mutations m where m.instance = i.value and m.tenant = :tenant
                and (m.actor in (select value from json_each(:names)) or m.on_behalf_of in (select value from json_each(:names)))
        )
        or exists (select 1 from documents d where d.instance = i.value and d.tenant = :tenant and d.amended_from <> '')
    )
    and (:partition = '' or exists (select 1 from instances p where p.id = i.value and p.partition = :partition));
