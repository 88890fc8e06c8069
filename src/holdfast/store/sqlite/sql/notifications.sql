-- name: add
insert into notifications (tenant, key, kind, recipient, instance, step, subject, body, created_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing;

-- name: page
select id, tenant, key, kind, recipient, instance, step, subject, body, created_at, read_at from notifications
where tenant = ? and kind = ? and recipient = ? and id < ? order by id desc limit ?;

-- name: unread_page
select id, tenant, key, kind, recipient, instance, step, subject, body, created_at, read_at from notifications
where tenant = ? and kind = ? and recipient = ? and id < ? and read_at is null order by id desc limit ?;

-- name: count_unread
select count(*) from notifications where tenant = ? and kind = ? and recipient = ? and read_at is null;

-- name: mark_read
update notifications set read_at = coalesce(read_at, ?) where tenant = ? and kind = ? and recipient = ? and id = ?;

-- name: mark_all_read
update notifications set read_at = ? where tenant = ? and kind = ? and recipient = ? and read_at is null;
