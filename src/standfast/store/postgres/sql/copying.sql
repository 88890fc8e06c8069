-- name: place
select format('%s %s', extract(epoch from pg_postmaster_start_time()), (select oid from pg_database where datname = current_database()))

-- name: try_lock
-- The migration lock, held until the end of the transaction.
select pg_try_advisory_xact_lock(4773520041)

-- name: patient
-- Whole tables are read and written without a time limit. A held lock is not waited for.
select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),
    set_config('lock_timeout', '3s', true), set_config('enable_seqscan', 'on', true)

-- name: snapshot
set transaction isolation level repeatable read, read only

-- name: columns
select c.relname, a.attname, t.typname, a.attidentity <> ''
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
where n.nspname = 'standfast' and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname, a.attnum

-- name: workers
select count(*) from standfast.workers where alive_until > ?::timestamptz

-- name: clock
select clock_timestamp()

-- name: set_fact
insert into standfast.meta (name, value) values (?::text, ?::text) on conflict (name) do update set value = excluded.value

-- name: forget_fact
delete from standfast.meta where name = ?::text

-- name: counter
-- None if no number was assigned.
select pg_sequence_last_value(pg_get_serial_sequence(?::text, ?::text)::regclass)

-- name: base
select value from standfast.meta where name = 'position_base'

-- name: next_transaction
select pg_snapshot_xmax(pg_current_snapshot())::text::int8

-- name: furthest
-- The end of the feed, and the furthest position of its readers.
select greatest((select max(position) from standfast.events), (select max(position) from standfast.projections), 0)

-- name: make_room
select standfast.make_partitions(?::timestamptz, 0)

-- name: others
select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname not in ('standfast', 'information_schema') and n.nspname !~ '^pg_' and c.relkind in ('r', 'p') and not c.relispartition
order by 1
