-- Documents: one, and lists of a type, newest first, each with its index.

-- name: document
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from standfast.documents d where d.tenant = $1::text and d.type = $2::text and d.id = $3::text and d.partition = $4::text

-- name: documents_of_type
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from standfast.documents d where d.tenant = $1::text and d.type = $2::text and d.instance < $3::uuid
    and ($5::text = '' or d.partition = $5::text)
order by d.instance desc limit $4::int8

-- name: documents_of_status
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from standfast.documents d where d.tenant = $1::text and d.type = $2::text and d.instance < $3::uuid and d.status = $6::text
    and ($5::text = '' or d.partition = $5::text) and ($7::text = '' or d.requester = $7::text)
order by d.instance desc limit $4::int8

-- name: documents_of_requester
select d.type, d.id, d.status, d.version, d.data, d.amended_from, d.superseded_by, d.requester, d.round, d.is_resting, d.is_amending, d.updated_by,
    d.instance, d.created_at, d.updated_at
from standfast.documents d where d.tenant = $1::text and d.requester = $6::text and d.type = $2::text and d.instance < $3::uuid
    and ($5::text = '' or d.partition = $5::text)
order by d.instance desc limit $4::int8

-- name: in_force
-- A definition of the tenant takes precedence over a shared one, even if all its versions are archived. The published
-- version is the newest: publishing archives the previous one for good.
select workflow, status, tenant = '*', version, coalesce((select s.is_suspended from standfast.suspensions s
    where s.tenant = $1::text and s.type = $2::text and s.workflow = b.workflow order by s.number desc limit 1), false)
from (
    (select tenant, workflow, status, version from standfast.blueprints
        where tenant = $1::text and type = $2::text and kind = 'effective' and version > 0 order by version desc limit 1)
    union all
    (select tenant, workflow, status, version from standfast.blueprints
        where tenant = '*' and type = $2::text and kind = 'effective' and version > 0 order by version desc limit 1)
) b order by tenant = '*' limit 1

-- name: stand_in
-- The newest earlier version that is not suspended. The bare workflow of a contract does not replace that of a body.
select workflow from standfast.blueprints b where tenant = $3::text and type = $2::text and kind = 'effective' and version > 0 and version < $4::int4
    and (b.body is not null or not exists (select 1 from standfast.blueprints f
        where f.tenant = $3::text and f.type = $2::text and f.kind = 'effective' and f.version = $4::int4 and f.body is not null))
    and not coalesce((select s.is_suspended from standfast.suspensions s
        where s.tenant = $1::text and s.type = $2::text and s.workflow = b.workflow order by s.number desc limit 1), false)
order by version desc limit 1

-- name: touched_by
select u.id from unnest($2::uuid[]) as u (id)
where (
        exists (select 1 from standfast.mutations m where m.instance = u.id and m.tenant = $1::text and (m.actor = any ($3::text[]) or m.on_behalf_of = any ($3::text[])))
        or exists (select 1 from standfast.documents d where d.instance = u.id and d.tenant = $1::text and d.amended_from <> '')
    )
    and ($4::text = '' or exists (select 1 from standfast.instances p where p.id = u.id and p.partition = $4::text))
