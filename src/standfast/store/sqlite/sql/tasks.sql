-- Human tasks: lists of the open ones, each with its index, and decisions of a person.

-- name: open_tasks
-- All open tasks of a tenant.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from human_tasks t
where t.tenant = :tenant and (:partition = '' or t.partition = :partition) and t.closed_at is null and (t.opened_at, t.instance, t.number) > (:at, :instance, :number)
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester) and (:due_before is null or t.due_at < :due_before)
order by t.opened_at, t.instance, t.number limit :limit;

-- name: overdue_tasks
-- Overdue tasks. They are few among many, so they are found by time and then sorted.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from human_tasks t indexed by human_tasks_due
where t.tenant = :tenant and (:partition = '' or t.partition = :partition) and t.closed_at is null and t.due_at < :due_before and (t.opened_at, t.instance, t.number) > (:at, :instance, :number)
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester)
order by t.opened_at, t.instance, t.number limit :limit;

-- name: open_tasks_of_definition
-- Tasks of one definition.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from human_tasks t
where t.tenant = :tenant and (:partition = '' or t.partition = :partition) and t.closed_at is null and t.definition = :definition and (t.opened_at, t.instance, t.number) > (:at, :instance, :number)
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester) and (:due_before is null or t.due_at < :due_before)
order by t.opened_at, t.instance, t.number limit :limit;

-- name: open_tasks_by_key
-- Tasks of the runs with a business key.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from human_tasks t
where t.tenant = :tenant and (:partition = '' or t.partition = :partition) and t.closed_at is null and t.key = :key and (t.opened_at, t.instance, t.number) > (:at, :instance, :number)
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester) and (:due_before is null or t.due_at < :due_before)
order by t.opened_at, t.instance, t.number limit :limit;

-- name: open_tasks_of_requester
-- Tasks of the runs of a requester.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from human_tasks t
where t.tenant = :tenant and (:partition = '' or t.partition = :partition) and t.closed_at is null and t.requester = :requester and (t.opened_at, t.instance, t.number) > (:at, :instance, :number)
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester) and (:due_before is null or t.due_at < :due_before)
order by t.opened_at, t.instance, t.number limit :limit;

-- name: open_tasks_of_person
-- Tasks in one inbox. An approver who is asked twice, by name and by role, gets a task by the first of these only.
select t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, p.opened_at, p.stands_for
from task_people p cross join human_tasks t on t.instance = p.instance and t.number = p.number
where p.tenant = :tenant and p.kind = :kind and p.name = :name and p.is_open and (:partition = '' or p.partition = :partition) and (not :is_for_another or p.stands_for <> '')
    and (p.opened_at, p.instance, p.number) > (:at, :instance, :number) and t.tenant = :tenant
    and (:definition = '' or t.definition = :definition) and (:key = '' or t.key = :key)
    and (:requester = '' or t.requester = :requester) and (:due_before is null or t.due_at < :due_before)
    and not exists (
        select 1 from task_people o
        where o.instance = p.instance and o.number = p.number and o.is_open and o.place < p.place
            and o.kind || ':' || o.name in (select value from json_each(:people))
    )
order by p.opened_at, p.instance, p.number limit :limit;

-- name: decisions_by
-- Decisions of a person, newest first.
select d.number, d.sequence, d.actor, d.on_behalf_of, d.outcome, d.comment, d.data, d.document_version, d.is_withdrawn,
    d.is_applied, d.applied, d.instance, d.decided_at,
    t.number, t.node, t.subject, t.role, t.requester, t.kept_out, t.agreement, t.stage, t.status, t.claimed_by, t.due_at, t.data,
    t.guarded, t.resolution, t.document_version, t.outcome, t.actor, t.comment, t.instance, t.opened_at, t.closed_at, t.definition, t.key, t.opened_at, ''
from task_decisions d cross join human_tasks t on t.instance = d.instance and t.number = d.number
where d.tenant = :tenant and d.actor = :actor and (:partition = '' or d.partition = :partition) and not d.is_withdrawn and t.tenant = :tenant
    and (d.decided_at, d.instance, d.number, d.sequence) < (:at, :instance, :number, :sequence)
order by d.decided_at desc, d.instance desc, d.number desc, d.sequence desc limit :limit;

-- name: count_tasks
-- How many are in each of these inboxes.
select w.value ->> 0 as kind, w.value ->> 1 as name, (
    select count(*) from task_people p
    where p.tenant = :tenant and p.kind = w.value ->> 0 and p.name = w.value ->> 1 and p.is_open
        and (:partition = '' or p.partition = :partition)
) as count from json_each(:people) as w where count > 0 order by 1, 2;

-- name: count_overdue
-- Number of distinct overdue tasks in these inboxes, independent of other inboxes.
select count(*) from json_each(:people) as w
cross join task_people p on p.tenant = :tenant and p.kind = w.value ->> 0 and p.name = w.value ->> 1 and p.is_open
        and (:partition = '' or p.partition = :partition)
cross join human_tasks t on t.instance = p.instance and t.number = p.number
where t.tenant = :tenant and t.due_at < :now and not exists (
    select 1 from task_people o
    where o.instance = p.instance and o.number = p.number and o.is_open and o.place < p.place
        and o.kind || ':' || o.name in (select value from json_each(:names))
);
