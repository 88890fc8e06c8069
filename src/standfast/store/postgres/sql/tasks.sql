-- Human tasks: lists of the open ones, each with its index, and decisions of a person.

-- name: open_tasks
-- All open tasks of a tenant.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from standfast.human_tasks t
where t.tenant = $1::text and ($10::text = '' or t.partition = $10::text) and t.closed_at is null
    and (t.opened_at, t.instance, t.number) > ($6::timestamptz, $7::uuid, $8::int4)
    and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text)
    and ($4::text = '' or t.requester = $4::text) and ($5::timestamptz is null or t.due_at < $5::timestamptz)
order by t.opened_at, t.instance, t.number limit $9::int8

-- name: overdue_tasks
-- Overdue tasks. They are few among many, so they are found by time and then sorted. The offset keeps the planner from
-- searching in list order, which would read all tasks.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from (
    select * from standfast.human_tasks t
    where t.tenant = $1::text and ($10::text = '' or t.partition = $10::text) and t.closed_at is null and t.due_at < $5::timestamptz offset 0
) as t
where (t.opened_at, t.instance, t.number) > ($6::timestamptz, $7::uuid, $8::int4)
    and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text) and ($4::text = '' or t.requester = $4::text)
order by t.opened_at, t.instance, t.number limit $9::int8

-- name: open_tasks_of_definition
-- Tasks of one definition.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from standfast.human_tasks t
where t.tenant = $1::text and ($10::text = '' or t.partition = $10::text) and t.closed_at is null and t.definition = $2::text
    and (t.opened_at, t.instance, t.number) > ($6::timestamptz, $7::uuid, $8::int4)
    and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text)
    and ($4::text = '' or t.requester = $4::text) and ($5::timestamptz is null or t.due_at < $5::timestamptz)
order by t.opened_at, t.instance, t.number limit $9::int8

-- name: open_tasks_by_key
-- Tasks of the runs with a business key.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from standfast.human_tasks t
where t.tenant = $1::text and ($10::text = '' or t.partition = $10::text) and t.closed_at is null and t.key = $3::text
    and (t.opened_at, t.instance, t.number) > ($6::timestamptz, $7::uuid, $8::int4)
    and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text)
    and ($4::text = '' or t.requester = $4::text) and ($5::timestamptz is null or t.due_at < $5::timestamptz)
order by t.opened_at, t.instance, t.number limit $9::int8

-- name: open_tasks_of_requester
-- Tasks of the runs of a requester.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from standfast.human_tasks t
where t.tenant = $1::text and ($10::text = '' or t.partition = $10::text) and t.closed_at is null and t.requester = $4::text
    and (t.opened_at, t.instance, t.number) > ($6::timestamptz, $7::uuid, $8::int4)
    and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text)
    and ($4::text = '' or t.requester = $4::text) and ($5::timestamptz is null or t.due_at < $5::timestamptz)
order by t.opened_at, t.instance, t.number limit $9::int8

-- name: open_tasks_of_people
-- Tasks in some inboxes, a page of each. An approver who is asked twice, by name and by role, gets a task by the first
-- of these only. The offsets keep the planner from joining whole tables: a page looks up few rows, one by one.
select f.number, f.node, f.subject, f.role, f.requester, f.kept_out, f.agreement, f.stage, f.status, f.claimed_by, f.due_at, f.data,
    f.guarded, f.resolution, f.document_version, f.outcome, f.actor, f.comment, f.instance, f.opened_at, f.closed_at, f.definition, f.key, f.asked_at, f.stands_for
from unnest($11::text[], $12::text[], $14::bool[]) as w (kind, name, is_for_another)
cross join lateral (
    select t.*, p.opened_at as asked_at, p.stands_for
    from standfast.task_people p cross join lateral (
        select * from standfast.human_tasks t where t.instance = p.instance and t.number = p.number and t.tenant = $1::text offset 0
    ) as t
    where p.tenant = $1::text and p.kind = w.kind and p.name = w.name and p.is_open and ($10::text = '' or p.partition = $10::text) and (not w.is_for_another or p.stands_for <> '')
        and (p.opened_at, p.instance, p.number) > ($6::timestamptz, $7::uuid, $8::int4)
        and ($2::text = '' or t.definition = $2::text) and ($3::text = '' or t.key = $3::text)
        and ($4::text = '' or t.requester = $4::text) and ($5::timestamptz is null or t.due_at < $5::timestamptz)
        and not exists (
            select 1 from standfast.task_people o
            where o.instance = p.instance and o.number = p.number and o.is_open and o.place < p.place
                and o.kind || ':' || o.name = any ($13::text[]) offset 0
        )
    order by p.opened_at, p.instance, p.number limit $9::int8
) as f
order by f.asked_at, f.instance, f.number limit $9::int8

-- name: decisions_by
-- Decisions of a person, newest first.
select d.number, d.sequence, d.actor, d.on_behalf_of, d.outcome, d.comment, d.data, d.document_version, d.is_withdrawn,
    d.is_applied, d.applied, d.instance, d.decided_at,
    t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from standfast.task_decisions d cross join lateral (
    select * from standfast.human_tasks t where t.instance = d.instance and t.number = d.number and t.tenant = $1::text offset 0
) as t
where d.tenant = $1::text and d.actor = $2::text and ($8::text = '' or d.partition = $8::text) and not d.is_withdrawn
    and (d.decided_at, d.instance, d.number, d.sequence) < ($3::timestamptz, $4::uuid, $5::int4, $6::int4)
order by d.decided_at desc, d.instance desc, d.number desc, d.sequence desc limit $7::int8

-- name: count_tasks
-- How many are in each of these inboxes.
select w.kind, w.name, f.count from unnest($2::text[], $3::text[]) as w (kind, name)
cross join lateral (
    select count(*) as count from standfast.task_people p
    where p.tenant = $1::text and p.kind = w.kind and p.name = w.name and p.is_open and ($4::text = '' or p.partition = $4::text)
) as f where f.count > 0 order by 1, 2

-- name: count_overdue
-- Number of distinct overdue tasks in these inboxes, independent of other inboxes.
select count(*) from unnest($3::text[], $4::text[]) as w (kind, name)
cross join lateral (
    select 1 from standfast.task_people p cross join lateral (
        select 1 from standfast.human_tasks t
        where t.instance = p.instance and t.number = p.number and t.tenant = $1::text and t.due_at < $2::timestamptz offset 0
    ) as t
    where p.tenant = $1::text and p.kind = w.kind and p.name = w.name and p.is_open and ($6::text = '' or p.partition = $6::text)
        and not exists (
            select 1 from standfast.task_people o
            where o.instance = p.instance and o.number = p.number and o.is_open and o.place < p.place
                and o.kind || ':' || o.name = any ($5::text[]) offset 0
        ) offset 0
) as f
