"""How questions to people are found and read for those who look at them.

Who may look at questions to people: those whose matter they are, and whoever may look at all runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, cast

from msgspec import structs

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext
from standfast.errors import NotFoundError, PayloadError
from standfast.features.runs.reads import graph_of, workflow_row
from standfast.features.runs.views import HumanTask
from standfast.features.tasks import views
from standfast.features.tasks.authorization import authority_at
from standfast.graph.model import HumanOp, Node
from standfast.kernel.actor import Actor
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import TASKS, StoredTask, TaskPlace
from standfast.kernel.row_kinds.tasks import (
    TASK_COMMENTS,
    TASK_DECISIONS,
    TASK_PEOPLE,
    StoredComment,
    StoredDecision,
    StoredPerson,
)
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.queries.authorization import READ
from standfast.machine.tasks.actions import ADD_APPROVER, ESCALATE, REASSIGN, WITHDRAW
from standfast.people.authority import Authority
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.tasks import AssigneeRecord, DecisionPlace, ListedTask, TaskQuery
from standfast.store.records.instances import InstanceHeader

Part = Literal["all", "roles", "delegated"]
"""Which part of somebody's inbox is wanted: all of it, what asks their roles, or what is theirs in the place of others."""


def checked_part(mine: object) -> Part | None:
    """Which part of somebody's inbox they want to see; None if it is not about theirs."""
    for said, part in ((True, "all"), ("roles", "roles"), ("delegated", "delegated"), (False, None)):
        if mine is said or (isinstance(said, str) and mine == said):
            return cast("Part | None", part)
    raise PayloadError(f"`mine` is True, 'roles' or 'delegated', not {mine!r}")


def inboxes(authority: Authority, definition: str = "", *, part: Part = "all") -> tuple[AssigneeRecord, ...]:
    """The inboxes that somebody looks into: their own, those of their roles, and those of whom they stand in for.

    Delegations that are about one definition only count if this is the one. Of one that is about a role the inbox of the giver is among them, for
    what asks them as holder of that role; `open_to` leaves out the rest.
    """
    actor = authority.actor
    found: list[AssigneeRecord] = []
    if part != "roles":
        found.append(AssigneeRecord("user", actor.on_behalf_of or actor.id, is_for_another=part == "delegated"))
    if part != "delegated":
        found += [AssigneeRecord("role", role) for role in sorted(actor.roles)]
    for each in authority.stands_in_for if part != "roles" else ():
        if each.definition in {"", definition}:
            found += [AssigneeRecord("role", role) for role in sorted(each.roles) if each.role in {"", role}]
            found += [AssigneeRecord("user", each.id)] if not each.role or each.role in each.roles else []
    return tuple(dict.fromkeys(found))


def mine_of(authority: Authority, query: TaskQuery, part: Part) -> list[TaskQuery]:
    """What has to be asked for the questions in somebody's inboxes: those of all definitions, and of each that a delegation is about."""
    if query.definition:
        return [structs.replace(query, people=inboxes(authority, query.definition, part=part))]
    some = sorted({each.definition for each in authority.stands_in_for if each.definition})
    return [structs.replace(query, definition=name, people=inboxes(authority, name, part=part)) for name in ("", *some)]


def place_of(after: HumanTask | None) -> TaskPlace | None:
    """Where a page ended; None before the first one."""
    return None if after is None else TaskPlace(after.asked_at, after.instance, after.step_number)


def rows_of(reader: TenantReader, queries: Sequence[TaskQuery], after: TaskPlace | None) -> list[ListedTask]:
    """A page of the open questions that one of these asks for."""
    pages = [reader.open_tasks(query if after is None else structs.replace(query, after=after)) for query in queries]
    if len(pages) == 1:  # Each question is on it once, and in order.
        return pages[0]
    found = sorted((each for page in pages for each in page), key=_place, reverse=True)
    once = {(each.task.instance.int, each.task.number): each for each in found}
    return sorted(once.values(), key=_place)[: queries[0].limit]


def _place(listed: ListedTask) -> tuple[datetime, int, int]:
    return listed.asked_at, listed.task.instance.int, listed.task.number


def decision_place(after: views.DecidedTask) -> DecisionPlace:
    """Where a page ended."""
    return DecisionPlace(
        after.decision.decided_at, after.task.instance, after.task.step_number, after.decision.sequence
    )


class FoundTask(NamedTuple):
    """A question with all rows that belong to it."""

    task: StoredTask
    header: InstanceHeader
    node: Node | None
    """The step of its definition; None if there is none any more."""
    people: list[StoredPerson]
    decisions: list[StoredDecision]
    comments: list[StoredComment]


def found_task(desk: CallContext, reader: TenantReader, instance: InstanceId, number: int) -> FoundTask:
    """A question; NotFoundError if there is none."""
    header = workflow_row(reader, instance)
    task = next((each for each in reader.rows(TASKS, instance) if each.number == number), None)
    if task is None:
        raise NotFoundError("task", f"{instance}:{number}", hint="take it from a list of tasks")
    return FoundTask(
        task,
        header,
        graph_of(desk, header).nodes.get(task.node),
        people=[each for each in reader.rows(TASK_PEOPLE, instance) if each.number == number],
        decisions=[each for each in reader.rows(TASK_DECISIONS, instance) if each.number == number],
        comments=[each for each in reader.rows(TASK_COMMENTS, instance) if each.number == number],
    )


def detailed(found: FoundTask, actor: Actor) -> views.TaskDetails:
    """A question as somebody may see it."""
    op = found.node.op if found.node is not None and isinstance(found.node.op, HumanOp) else HumanOp(outcomes=())
    return views.task_details(
        found.task,
        found.header,
        actor,
        outcomes=list(op.outcomes),
        form=op.form,
        people=[views.task_person(each) for each in found.people],
        decisions=[views.task_decision(each) for each in found.decisions],
        comments=[views.task_comment(each) for each in found.comments],
    )


def may_see_all(desk: CallContext) -> bool:
    """Whether the actor may look at all runs, or hand on the questions of all, so that nobody has to be looked up."""
    return _sees_all(desk.request.actor)


def _sees_all(actor: Actor) -> bool:
    return any(actor.may(each) for each in (READ, REASSIGN, ADD_APPROVER, WITHDRAW, ESCALATE))


def onlooker(desk: CallContext) -> Authority | None:
    """Who the actor is who wants to look at questions; None if they may look at all of them."""
    if may_see_all(desk):
        return None
    found = authority_at(desk)
    return None if _sees_all(found.actor) else found


def check_list(desk: CallContext, *, role: str | None, definition: str) -> None:
    """ForbiddenError unless the actor may list the questions to a role, which is theirs or that of somebody they stand in for, or to all."""
    authority = onlooker(desk)
    if authority is None or (role is not None and AssigneeRecord("role", role) in inboxes(authority, definition)):
        return
    check_reader(desk, what="list the questions to others, other than with `mine` or `requested_by_me`")


def check_question(desk: CallContext, authority: Authority | None, found: FoundTask) -> None:
    """ForbiddenError unless a question is the actor's matter: asked of them or of anybody, decided by them, or of a run of theirs."""
    if authority is None or _is_for_anybody(authority, found):
        return
    if not authority.is_one_of(_concerned(found), definition=found.header.definition):
        check_reader(desk, what="look at a question to others")


def _is_for_anybody(authority: Authority, found: FoundTask) -> bool:
    node = found.node
    if node is None or not isinstance(node.op, HumanOp) or node.op.all_asks or node.op.chain:
        return False
    return authority.actor.may(node.capability)


def _concerned(found: FoundTask) -> Iterable[Person]:
    yield from (Person(kind=each.kind, name=each.name) for each in found.people)
    names = [found.header.started_by, found.task.requester, found.task.claimed_by]
    names += [each.stands_for for each in found.people]
    names += [name for each in found.decisions for name in (each.actor, each.on_behalf_of)]
    yield from (Person(name=name) for name in names if name)
