-- Documents: one, and lists of a type, newest first, each with the index that it reads.

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from holdfast.documents d where d.tenant = $1::text and d.type = $2::text and d.id = $3::text and d.partition = $4::text

-- name: documents_of_type
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from holdfast.documents d where d.tenant = $1::text and d.type = $2::text and d.instance < $3::uuid
    and ($5::text = '' or d.partition = $5::text)
order by d.instance desc limit $4::int8

-- name: documents_of_status
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from holdfast.documents d where d.tenant = $1::text and d.type = $2::text and d.instance < $3::uuid and d.status = $6::text
    and ($5::text = '' or d.partition = $5::text) and ($7::text = '' or d.requester = $7::text)
order by d.instance desc limit $4::int8

-- name: documents_of_requester
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.updated_by,
    d.instance, d.created_at, d.updated_at
from holdfast.documents d where d.tenant = $1::text and d.requester = $6::text and d.type = $2::text and d.instance < $3::uuid
    and ($5::text = '' or d.partition = $5::text)
order by d.instance desc limit $4::int8

-- name: in_force
-- What a tenant itself has published stands before what is shared, also if all of it is archived.
select workflow, status, tenant = '*' from holdfast.blueprints
where tenant in ($1::text, '*') and type = $2::text and kind = 'effective' and version > 0
order by tenant = '*', status = 'archived', version desc limit 1
