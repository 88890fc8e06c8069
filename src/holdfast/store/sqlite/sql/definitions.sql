-- name: publish
insert into definitions (tenant, name, version, kind, source, compiled, hash, compiler, status, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing;

-- name: adopt
-- Messages that were accepted before the definition was published were taken for those of a decider.
update inbox set language = '$graph' where language = ? and ? in ('*', tenant);

-- name: get
select tenant, name, version, kind, source, compiled, hash, compiler, status, created_at
from definitions where tenant = ? and name = ? and version = ?;

-- name: versions
select version from definitions where tenant = ? and name = ? order by created_at, version;

-- name: listed
select name, version, kind, hash, created_at from definitions
where tenant = ? and status = 'published' order by name, created_at, version;
