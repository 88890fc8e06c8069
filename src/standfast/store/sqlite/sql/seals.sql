-- name: add
insert into seals (tenant, number, instance, version, digest, link, sealed_by, sealed_at) values (?, ?, ?, ?, ?, ?, ?, ?);

-- name: of
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from seals where tenant = ? and instance = ? order by number;

-- name: listed
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from seals where tenant = ? and number > ? order by number limit ?;

-- name: last
select tenant, number, instance, version, digest, link, sealed_by, sealed_at
from seals where tenant = ? order by number desc limit 1;
