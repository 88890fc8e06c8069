-- name: add
insert into standfast.notifications (tenant, key, kind, recipient, instance, step, subject, body, partition, occasion, kept_out, created_at)
values (?::text, ?::text, ?::text, ?::text, ?::uuid, ?::int4, ?::text, ?::text, ?::text, ?::text, ?::text, ?::timestamptz) on conflict do nothing

-- name: page
-- A notification to a role is read per reader, one to a user by that user. A reader who gets the same occasion by name
-- and by roles sees only the first one.
select n.id, n.tenant, n.key, n.kind, n.recipient, n.instance, n.step, n.subject, n.body, n.partition, n.occasion, n.kept_out, n.created_at, coalesce(n.read_at, r.read_at)
from standfast.notifications n left join standfast.notification_reads r on r.notification = n.id and r.reader = ?::text
where n.tenant = ?::text and n.partition = coalesce(nullif(?::text, ''), n.partition) and n.kind = ?::text and n.recipient = ?::text and n.id < ?::int8
    and not jsonb_exists_any(n.kept_out::jsonb, ?::text[])
    and not exists (
        select 1 from standfast.notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?::text) or (o.kind = 'role' and o.recipient = any(?::text[])))
    )
order by n.id desc limit ?::int8

-- name: unread_page
select n.id, n.tenant, n.key, n.kind, n.recipient, n.instance, n.step, n.subject, n.body, n.partition, n.occasion, n.kept_out, n.created_at, coalesce(n.read_at, r.read_at)
from standfast.notifications n left join standfast.notification_reads r on r.notification = n.id and r.reader = ?::text
where n.tenant = ?::text and n.partition = coalesce(nullif(?::text, ''), n.partition) and n.kind = ?::text and n.recipient = ?::text and n.id < ?::int8 and n.read_at is null and r.read_at is null
    and not jsonb_exists_any(n.kept_out::jsonb, ?::text[])
    and not exists (
        select 1 from standfast.notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?::text) or (o.kind = 'role' and o.recipient = any(?::text[])))
    )
order by n.id desc limit ?::int8

-- name: count_unread
select count(*) from standfast.notifications n left join standfast.notification_reads r on r.notification = n.id and r.reader = ?::text
where n.tenant = ?::text and n.partition = coalesce(nullif(?::text, ''), n.partition) and n.kind = ?::text and n.recipient = ?::text and n.read_at is null and r.read_at is null
    and not jsonb_exists_any(n.kept_out::jsonb, ?::text[])
    and not exists (
        select 1 from standfast.notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?::text) or (o.kind = 'role' and o.recipient = any(?::text[])))
    )

-- name: mark_read
update standfast.notifications set read_at = coalesce(read_at, ?::timestamptz)
where tenant = ?::text and partition = coalesce(nullif(?::text, ''), partition) and kind = ?::text and recipient = ?::text and id = ?::int8

-- name: mark_read_by
-- Marks a notification of a role for one reader. The first read time is kept.
insert into standfast.notification_reads (notification, reader, tenant, read_at)
select n.id, ?::text, n.tenant, ?::timestamptz from standfast.notifications n where n.tenant = ?::text and n.partition = coalesce(nullif(?::text, ''), n.partition) and n.kind = ?::text and n.recipient = ?::text and n.id = ?::int8
    and not jsonb_exists_any(n.kept_out::jsonb, ?::text[])
on conflict (notification, reader) do update set read_at = notification_reads.read_at

-- name: mark_all_read
update standfast.notifications set read_at = ?::timestamptz
where tenant = ?::text and partition = coalesce(nullif(?::text, ''), partition) and kind = ?::text and recipient = ?::text and read_at is null

-- name: mark_all_read_by
insert into standfast.notification_reads (notification, reader, tenant, read_at)
select n.id, ?::text, n.tenant, ?::timestamptz from standfast.notifications n where n.tenant = ?::text and n.partition = coalesce(nullif(?::text, ''), n.partition) and n.kind = ?::text and n.recipient = ?::text
    and not jsonb_exists_any(n.kept_out::jsonb, ?::text[])
on conflict (notification, reader) do nothing
