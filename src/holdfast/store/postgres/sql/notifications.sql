-- name: add
insert into holdfast.notifications (tenant, key, kind, recipient, instance, step, subject, body, created_at)
values (?::text, ?::text, ?::text, ?::text, ?::uuid, ?::int4, ?::text, ?::text, ?::timestamptz) on conflict do nothing

-- name: page
select id, tenant, key, kind, recipient, instance, step, subject, body, created_at, read_at from holdfast.notifications
where tenant = ?::text and kind = ?::text and recipient = ?::text and id < ?::int8 order by id desc limit ?::int8

-- name: unread_page
select id, tenant, key, kind, recipient, instance, step, subject, body, created_at, read_at from holdfast.notifications
where tenant = ?::text and kind = ?::text and recipient = ?::text and id < ?::int8 and read_at is null order by id desc limit ?::int8

-- name: count_unread
select count(*) from holdfast.notifications where tenant = ?::text and kind = ?::text and recipient = ?::text and read_at is null

-- name: mark_read
update holdfast.notifications set read_at = coalesce(read_at, ?::timestamptz)
where tenant = ?::text and kind = ?::text and recipient = ?::text and id = ?::int8

-- name: mark_all_read
update holdfast.notifications set read_at = ?::timestamptz
where tenant = ?::text and kind = ?::text and recipient = ?::text and read_at is null
