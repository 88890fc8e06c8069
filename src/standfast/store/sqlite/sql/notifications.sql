-- name: add
insert into notifications (tenant, key, kind, recipient, instance, step, subject, body, partition, occasion, kept_out, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing;

-- name: page
-- A notification to a role is read per reader, one to a user by that user. A reader who gets the same occasion by name
-- and by roles sees only the first one.
select n.id, n.tenant, n.key, n.kind, n.recipient, n.instance, n.step, n.subject, n.body, n.partition, n.occasion, n.kept_out, n.created_at, coalesce(n.read_at, r.read_at)
from notifications n left join notification_reads r on r.notification = n.id and r.reader = ?
where n.tenant = ? and n.partition = coalesce(nullif(?, ''), n.partition) and n.kind = ? and n.recipient = ? and n.id < ?
    and not exists (select 1 from json_each(n.kept_out) k where k.value in (select value from json_each(?)))
    and not exists (
        select 1 from notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?) or (o.kind = 'role' and o.recipient in (select value from json_each(?))))
    )
order by n.id desc limit ?;

-- name: unread_page
select n.id, n.tenant, n.key, n.kind, n.recipient, n.instance, n.step, n.subject, n.body, n.partition, n.occasion, n.kept_out, n.created_at, coalesce(n.read_at, r.read_at)
from notifications n left join notification_reads r on r.notification = n.id and r.reader = ?
where n.tenant = ? and n.partition = coalesce(nullif(?, ''), n.partition) and n.kind = ? and n.recipient = ? and n.id < ? and n.read_at is null and r.read_at is null
    and not exists (select 1 from json_each(n.kept_out) k where k.value in (select value from json_each(?)))
    and not exists (
        select 1 from notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?) or (o.kind = 'role' and o.recipient in (select value from json_each(?))))
    )
order by n.id desc limit ?;

-- name: count_unread
select count(*) from notifications n left join notification_reads r on r.notification = n.id and r.reader = ?
where n.tenant = ? and n.partition = coalesce(nullif(?, ''), n.partition) and n.kind = ? and n.recipient = ? and n.read_at is null and r.read_at is null
    and not exists (select 1 from json_each(n.kept_out) k where k.value in (select value from json_each(?)))
    and not exists (
        select 1 from notifications o
        where o.instance = n.instance and o.occasion = n.occasion and o.tenant = n.tenant and o.id < n.id and o.occasion <> ''
            and ((o.kind = 'user' and o.recipient = ?) or (o.kind = 'role' and o.recipient in (select value from json_each(?))))
    );

-- name: mark_read
update notifications set read_at = coalesce(read_at, ?)
where tenant = ? and partition = coalesce(nullif(?, ''), partition) and kind = ? and recipient = ? and id = ?;

-- name: mark_read_by
-- Marks a notification of a role for one reader. The first read time is kept.
insert into notification_reads (notification, reader, tenant, read_at)
select n.id, ?, n.tenant, ? from notifications n where n.tenant = ? and n.partition = coalesce(nullif(?, ''), n.partition) and n.kind = ? and n.recipient = ? and n.id = ?
    and not exists (select 1 from json_each(n.kept_out) k where k.value in (select value from json_each(?)))
on conflict (notification, reader) do update set read_at = notification_reads.read_at;

-- name: mark_all_read
update notifications set read_at = ?
where tenant = ? and partition = coalesce(nullif(?, ''), partition) and kind = ? and recipient = ? and read_at is null;

-- name: mark_all_read_by
insert into notification_reads (notification, reader, tenant, read_at)
select n.id, ?, n.tenant, ? from notifications n where n.tenant = ? and n.partition = coalesce(nullif(?, ''), n.partition) and n.kind = ? and n.recipient = ?
    and not exists (select 1 from json_each(n.kept_out) k where k.value in (select value from json_each(?)))
on conflict (notification, reader) do nothing;
