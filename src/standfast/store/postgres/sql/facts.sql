-- name: versions
select coalesce((select version from standfast.fact_versions where tenant = ?::text and kind = 'access'), 0),
    coalesce((select version from standfast.fact_versions where tenant = ?::text and kind = 'charters'), 0)

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at, i.version
from standfast.documents d join standfast.instances i on i.id = any (array[d.instance])
where d.tenant = ?::text and d.type = ?::text and d.id = ?::text and d.partition = ?::text
