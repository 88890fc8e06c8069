"""Questions to a role that somebody who has it may not decide: four eyes keep them out, so that they are none of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.app.desk import Desk
from holdfast.app.task_reads import tasks_of
from holdfast.app.task_views import HumanTask
from holdfast.app.workflow_reads import folded_workflow, graph_of
from holdfast.errors import DefinitionError, UnknownEventError
from holdfast.kernel.actor import Actor
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.people_records import TASK_DECISIONS
from holdfast.kernel.records import TASKS
from holdfast.machine.graphs.graph import Human
from holdfast.machine.machine import GraphMachine
from holdfast.machine.runs.candidates import name_refusal
from holdfast.machine.runs.state import State
from holdfast.store.reading import Reader
from holdfast.store.shapes import Header
from holdfast.store.tasks import TaskQuery


def open_to(
    desk: Desk, reader: Reader, queries: Sequence[TaskQuery], after: HumanTask | None, *, seen_by: Actor
) -> list[HumanTask]:
    """A page of the open questions that one of these asks for, without those that the actor of the desk is kept out of.

    `seen_by` is that actor with the roles that the directory has for them.
    """
    found, limit = list[HumanTask](), queries[0].limit
    while True:
        page = tasks_of(reader, queries, after, seen_by)
        found += _allowed(desk, reader, page)
        if len(page) < limit or len(found) >= limit:
            return found[:limit]
        after = page[-1]


def _allowed(desk: Desk, reader: Reader, page: Sequence[HumanTask]) -> Iterator[HumanTask]:
    headers = {each.id: each for each in reader.headers(list(dict.fromkeys(each.instance for each in page)))}
    touched = _touched(desk, reader, page)
    for each in page:
        header = headers.get(each.instance)
        if header is None or not _is_barred(desk, reader, header, each, is_touched=each.instance in touched):
            yield each


def _is_barred(desk: Desk, reader: Reader, header: Header, task: HumanTask, *, is_touched: bool) -> bool:
    """Whether the actor is kept out of a question; of one that only newer code can read nobody knows that here, and the others are listed beside it."""
    try:
        kept_out = _is_kept_out(desk, reader, header, task)
        return kept_out or (is_touched and _is_kept_from(desk, reader, header.id, task))
    except (DefinitionError, UnknownEventError):
        return False


def _touched(desk: Desk, reader: Reader, page: Sequence[HumanTask]) -> set[InstanceId]:
    """The runs of documents that the actor may have written: few, so that they can be looked at."""
    about = list(dict.fromkeys(each.instance for each in page if each.document_version))
    actor = desk.request.actor
    return reader.touched_by(sorted(_names(actor)), about) if about and actor.kind != "system" else set()


def _names(actor: Actor) -> set[str]:
    return {actor.id, actor.on_behalf_of} - {""}


def _is_kept_from(desk: Desk, reader: Reader, instance: InstanceId, task: HumanTask) -> bool:
    """Whether the actor would be refused, as one of those whose document it is."""
    tracked = folded_workflow(desk, reader, instance)
    state, machine = tracked.state, tracked.program.decider
    assert isinstance(state, State)
    assert isinstance(machine, GraphMachine)
    step = state.open.get(task.step_number)
    return step is not None and bool(name_refusal(machine.routes_of(state), state, step, _names(desk.request.actor)))


def _is_kept_out(desk: Desk, reader: Reader, header: Header, task: HumanTask) -> bool:
    """Whether the actor has wanted the run, or has decided what is to be decided by another one."""
    node = graph_of(desk, header).nodes.get(task.name)
    if node is None or not isinstance(node.op, Human):
        return False
    op, actor = node.op, desk.request.actor.id
    if not op.self_approval and task.requester == actor:
        return True
    if not op.distinct_from and not op.distinct_approvers:
        return False
    nodes = {each.number: each.node for each in reader.rows(TASKS, header.id)}
    given = [each for each in reader.rows(TASK_DECISIONS, header.id) if actor in {each.actor, each.on_behalf_of}]
    used = {nodes[each.number] for each in given if each.is_applied}
    if not op.distinct_approvers:
        return bool(used & {*op.distinct_from})
    return bool(used) or any(each.number == task.step_number and not each.is_withdrawn for each in given)
