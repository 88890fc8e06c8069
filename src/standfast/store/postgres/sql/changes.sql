-- name: add
-- A repeated call is the same change.
insert into standfast.changes (tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark)
values (?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::timestamptz, ?::text)
on conflict (mark) do nothing

-- name: page
select id, tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark from standfast.changes
where tenant = ?::text and id < ?::bigint and actor = coalesce(nullif(?::text, ''), actor) order by id desc limit ?::bigint

-- name: page_of
-- Changes of one kind of thing, or of one thing.
select id, tenant, subject, name, action, before, after, reason, actor, on_behalf_of, trace, at, mark from standfast.changes
where tenant = ?::text and subject = ?::text and name = coalesce(nullif(?::text, ''), name) and id < ?::bigint
    and actor = coalesce(nullif(?::text, ''), actor)
order by id desc limit ?::bigint
