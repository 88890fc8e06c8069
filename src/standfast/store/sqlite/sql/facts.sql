-- name: versions
select coalesce((select version from fact_versions where tenant = :tenant and kind = 'access'), 0),
    coalesce((select version from fact_versions where tenant = :tenant and kind = 'charters'), 0);

-- name: version
select version from fact_versions where tenant = ? and kind = ?;

-- name: instance_version
select version from instances where tenant = ? and definition = ? and key = ? and coalesce(partition, '') = ?;

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at, i.version
from documents d join instances i on i.id = d.instance where d.tenant = ? and d.type = ? and d.id = ? and d.partition = ?;
