-- name: hold
-- Serializes the changes of a directory, so that checked values are unchanged when the change is written.
select pg_advisory_xact_lock(hashtextextended('standfast directory ' || ?::text, 0))

-- name: is_empty
select not exists (select 1 from standfast.principals where tenant = ?::text)

-- name: has_grants
select exists (select 1 from standfast.role_grants where tenant = ?::text)

-- name: principals
select id, kind, name, email, is_active, manager, attributes
from standfast.principals where tenant = ?::text and id = any(?::text[]) order by id

-- name: page
select id, kind, name, email, is_active, manager, attributes
from standfast.principals where tenant = ?::text and id > ?::text order by id limit ?::bigint

-- name: inactive
select id from standfast.principals where tenant = ?::text and not is_active order by id

-- name: grants_to
-- Looks up person by person, because a planner without statistics would read all rows of the tenant.
select found.* from unnest(?::text[]) as u (name) cross join lateral (
    select id, begins_at, ends_at, principal, role from standfast.role_grants
    where tenant = ?::text and principal = u.name and (ends_at is null or ends_at > ?::timestamptz) order by id
) as found order by found.id

-- name: grants_of
select id, begins_at, ends_at, principal, role
from standfast.role_grants where tenant = ?::text and role = ?::text and (ends_at is null or ends_at > ?::timestamptz) order by id

-- name: delegations_by
select found.* from unnest(?::text[]) as u (name) cross join lateral (
    select id, begins_at, ends_at, giver, receiver, role, definition, reason from standfast.delegations
    where tenant = ?::text and giver = u.name and (ends_at is null or ends_at > ?::timestamptz) order by id
) as found order by found.id

-- name: delegations_to
select id, begins_at, ends_at, giver, receiver, role, definition, reason
from standfast.delegations where tenant = ?::text and receiver = ?::text and (ends_at is null or ends_at > ?::timestamptz) order by id

-- name: delegation
select id, begins_at, ends_at, giver, receiver, role, definition, reason
from standfast.delegations where tenant = ?::text and id = ?::bigint

-- name: absences
select found.* from unnest(?::text[]) as u (name) cross join lateral (
    select id, begins_at, ends_at, principal, reason from standfast.absences
    where tenant = ?::text and principal = u.name and (ends_at is null or ends_at > ?::timestamptz) order by id
) as found order by found.id

-- name: absence
select id, begins_at, ends_at, principal, reason from standfast.absences where tenant = ?::text and id = ?::bigint

-- name: put
insert into standfast.principals (tenant, id, kind, name, email, is_active, manager, attributes)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::boolean, ?::text, ?::text)
on conflict (tenant, id) do update set kind = excluded.kind, name = excluded.name, email = excluded.email,
    is_active = excluded.is_active, manager = excluded.manager, attributes = excluded.attributes

-- name: grant
insert into standfast.role_grants (tenant, principal, role, begins_at, ends_at)
values (?::text, ?::text, ?::text, ?::timestamptz, ?::timestamptz) returning id

-- name: delegate
insert into standfast.delegations (tenant, giver, receiver, role, definition, reason, begins_at, ends_at)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::timestamptz, ?::timestamptz) returning id

-- name: absent
insert into standfast.absences (tenant, principal, reason, begins_at, ends_at)
values (?::text, ?::text, ?::text, ?::timestamptz, ?::timestamptz) returning id

-- name: end_grant
update standfast.role_grants set ends_at = ?::timestamptz where tenant = ?::text and id = ?::bigint

-- name: end_delegation
update standfast.delegations set ends_at = ?::timestamptz where tenant = ?::text and id = ?::bigint

-- name: end_absence
update standfast.absences set ends_at = ?::timestamptz where tenant = ?::text and id = ?::bigint
