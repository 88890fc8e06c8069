"""Who may look at questions to people: those whose matter they are, and whoever may look at all runs."""

from __future__ import annotations

from collections.abc import Iterable

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext
from standfast.features.tasks.authorization import authority_at
from standfast.features.tasks.reads import FoundTask, inboxes
from standfast.graph.model import HumanOp
from standfast.kernel.actor import Actor
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.queries.authorization import READ
from standfast.machine.tasks.actions import ADD_APPROVER, ESCALATE, REASSIGN, WITHDRAW
from standfast.people.authority import Authority
from standfast.store.ports.tasks import AssigneeRecord


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
