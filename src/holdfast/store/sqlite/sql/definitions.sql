-- name: publish
insert into definitions (tenant, name, version, kind, source, compiled, hash, compiler, status, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing;

-- name: get
select tenant, name, version, kind, source, compiled, hash, compiler, status, created_at
from definitions where tenant = ? and name = ? and version = ?;

-- name: versions
select version from definitions where tenant = ? and name = ? order by created_at, version;

-- name: names
select distinct name from definitions where tenant = ? order by name;
