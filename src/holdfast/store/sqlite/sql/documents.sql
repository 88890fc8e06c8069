-- Documents: one, and lists of a type, newest first, each with the index that it reads.

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.type = :type and d.id = :id and d.partition = :partition;

-- name: documents_of_type
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and (:partition = '' or d.partition = :partition) and d.type = :type and d.instance < :before
order by d.instance desc limit :limit;

-- name: documents_of_status
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.type = :type and d.status = :status and d.instance < :before
    and (:partition = '' or d.partition = :partition)
    and (:requester = '' or d.requester = :requester)
order by d.instance desc limit :limit;

-- name: documents_of_requester
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from documents d where d.tenant = :tenant and d.requester = :requester and d.type = :type and d.instance < :before
    and (:partition = '' or d.partition = :partition)
order by d.instance desc limit :limit;

-- name: in_force
-- What a tenant itself has published stands before what is shared, also if all of it is archived.
select workflow, status, tenant = '*' from blueprints where tenant in (:tenant, '*') and type = :type and kind = 'effective' and version > 0
order by tenant = '*', status = 'archived', version desc limit 1;
