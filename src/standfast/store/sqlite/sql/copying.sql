-- name: columns
select name from pragma_table_info(?);

-- name: workers
select count(*) from workers where alive_until > ?;

-- name: clock
select strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now');

-- name: set_fact
insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value;

-- name: forget_fact
delete from meta where name = ?;

-- name: counters
-- The numbering of SQLite itself: the last assigned number, even if its row is gone.
select name, seq from sqlite_sequence;

-- name: forget_counter
delete from sqlite_sequence where name = ?;

-- name: set_counter
insert into sqlite_sequence (name, seq) values (?, ?);

-- name: furthest
-- The end of the feed, and the furthest position of its readers.
select max(coalesce((select max(position) from events), 0), coalesce((select max(position) from projections), 0));

-- name: others
select name from sqlite_master where type = 'table' and name not like 'sqlite\_%' escape '\' order by name;
