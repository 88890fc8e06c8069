-- name: add
-- A repeated call is the same change.
insert into changes (tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (mark) do nothing;

-- name: page
select id, tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark from changes
where tenant = :tenant and id < :before and (:actor = '' or actor = :actor) order by id desc limit :limit;

-- name: page_of
-- Changes of one kind of thing, or of one thing.
select id, tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark from changes
where tenant = :tenant and subject = :subject and (:name = '' or name = :name) and id < :before and (:actor = '' or actor = :actor)
order by id desc limit :limit;
