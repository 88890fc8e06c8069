-- name: exists
select 1 from sqlite_master where type = 'table' and name = 'instances';

-- name: standing
select (select count(*) from instances), (select count(*) from instances where ended_at is null),
    (select count(*) from workers where alive_until > ?);

-- name: references
-- Tables with the tables that their keys refer to.
select m.name, f."table" from sqlite_master m, pragma_foreign_key_list(m.name) f where m.type = 'table';

-- name: probe
-- A table to be renamed, because renaming checks all views and triggers.
create table standfast_probe (a);

-- name: rename
alter table standfast_probe rename to standfast_probed;

-- name: drop_probe
drop table if exists standfast_probe;

-- name: drop_probed
drop table if exists standfast_probed;

-- name: unmark
pragma user_version = 0;

-- name: clock
select strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now');
