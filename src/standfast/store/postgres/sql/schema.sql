-- name: exists
select to_regclass('standfast.migrations') is not null

-- name: version
select coalesce(max(number), 0) from standfast.migrations

-- name: try_lock
-- Held until the end of the session. It is polled and not waited for, so that a stuck migration blocks no session.
select pg_try_advisory_lock(4773520041)

-- name: unlock
select pg_advisory_unlock(4773520041)

-- name: make_roles
do $$ begin
    if not exists (select 1 from pg_roles where rolname = 'standfast_engine') then create role standfast_engine nologin; end if;
    if not exists (select 1 from pg_roles where rolname = 'standfast_tenant') then create role standfast_tenant nologin; end if;
    if not pg_has_role('standfast_engine', 'standfast_tenant', 'usage') then grant standfast_tenant to standfast_engine; end if;
    if not pg_has_role('standfast_engine', 'usage') then execute format('grant standfast_engine to %I', current_user); end if;
end $$

-- name: prepare
create schema if not exists standfast

-- name: prepare_table
create table if not exists standfast.migrations (
    number integer primary key, name text not null, applied_at timestamptz not null default clock_timestamp()
)

-- name: impatient
select set_config('lock_timeout', '3s', true)

-- name: remember
insert into standfast.migrations (number, name) values (?::int4, ?::text)

-- name: role_exists
select 1 from pg_roles where rolname = ?::text

-- name: is_member
-- A role that was created without superuser rights has its creator as a member, but without the rights of the role.
select pg_has_role(coalesce(?::name, current_user), ?::name, 'usage')

-- name: meta
select value from standfast.meta where name = ?::text

-- name: set_meta
insert into standfast.meta (name, value) values (?::text, ?::text) on conflict (name) do update set value = excluded.value

-- name: set_meta_once
insert into standfast.meta (name, value) values (?::text, ?::text) on conflict do nothing

-- name: clock
select clock_timestamp()
