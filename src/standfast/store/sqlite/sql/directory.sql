-- name: is_empty
select not exists (select 1 from principals where tenant = ?);

-- name: has_grants
select exists (select 1 from role_grants where tenant = ?);

-- name: principals
select p.id, p.kind, p.name, p.email, p.is_active, p.manager, p.attributes
from json_each(?2) as i cross join principals p on p.tenant = ?1 and p.id = i.value order by p.id;

-- name: page
select id, kind, name, email, is_active, manager, attributes
from principals where tenant = ? and id > ? order by id limit ?;

-- name: inactive
select id from principals indexed by principals_inactive where tenant = ? and is_active = 0 order by id;

-- name: grants_to
select g.id, g.begins_at, g.ends_at, g.principal, g.role
from json_each(?2) as i cross join role_grants g on g.tenant = ?1 and g.principal = i.value
where g.ends_at is null or g.ends_at > ?3 order by g.id;

-- name: grants_of
select id, begins_at, ends_at, principal, role
from role_grants where tenant = ? and role = ? and (ends_at is null or ends_at > ?) order by id;

-- name: delegations_by
select d.id, d.begins_at, d.ends_at, d.giver, d.receiver, d.role, d.definition, d.reason
from json_each(?2) as i cross join delegations d on d.tenant = ?1 and d.giver = i.value
where d.ends_at is null or d.ends_at > ?3 order by d.id;

-- name: delegations_to
select id, begins_at, ends_at, giver, receiver, role, definition, reason
from delegations where tenant = ? and receiver = ? and (ends_at is null or ends_at > ?) order by id;

-- name: delegation
select id, begins_at, ends_at, giver, receiver, role, definition, reason from delegations where tenant = ? and id = ?;

-- name: absences
select a.id, a.begins_at, a.ends_at, a.principal, a.reason
from json_each(?2) as i cross join absences a on a.tenant = ?1 and a.principal = i.value
where a.ends_at is null or a.ends_at > ?3 order by a.id;

-- name: absence
select id, begins_at, ends_at, principal, reason from absences where tenant = ? and id = ?;

-- name: put
insert into principals (tenant, id, kind, name, email, is_active, manager, attributes) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (tenant, id) do update set kind = excluded.kind, name = excluded.name, email = excluded.email,
    is_active = excluded.is_active, manager = excluded.manager, attributes = excluded.attributes;

-- name: grant
insert into role_grants (tenant, principal, role, begins_at, ends_at) values (?, ?, ?, ?, ?) returning id;

-- name: delegate
insert into delegations (tenant, giver, receiver, role, definition, reason, begins_at, ends_at)
values (?, ?, ?, ?, ?, ?, ?, ?) returning id;

-- name: absent
insert into absences (tenant, principal, reason, begins_at, ends_at) values (?, ?, ?, ?, ?) returning id;

-- name: end_grant
update role_grants set ends_at = ? where tenant = ? and id = ?;

-- name: end_delegation
update delegations set ends_at = ? where tenant = ? and id = ?;

-- name: end_absence
update absences set ends_at = ? where tenant = ? and id = ?;
