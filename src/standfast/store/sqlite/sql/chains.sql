-- name: publish
insert into chains (tenant, name, version, stages, description, published_by, published_at)
values (?1, ?2, (select coalesce(max(version), 0) + 1 from chains where tenant = ?1 and name = ?2), ?3, ?4, ?5, ?6);

-- name: newest
select tenant, name, version, stages, description, published_by, published_at
from chains where tenant = ? and name = ? order by version desc limit 1;

-- name: get
select tenant, name, version, stages, description, published_by, published_at
from chains where tenant = ? and name = ? and version = ?;

-- name: listed
select tenant, name, version, stages, description, published_by, published_at
from chains where tenant = ?1 and (?2 = '' or name = ?2) order by name, version;
