"""How questions to people are found and read for those who look at them."""

from __future__ import annotations

from msgspec import structs

from holdfast.app import task_views as views
from holdfast.app.desk import Desk
from holdfast.app.workflow_reads import graph_of, workflow_row
from holdfast.errors import NotFoundError
from holdfast.kernel.actor import Actor
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.people_records import TASK_COMMENTS, TASK_DECISIONS, TASK_PEOPLE
from holdfast.kernel.records import TASKS, TaskPlace
from holdfast.machine.graphs.graph import Human
from holdfast.store.reading import Reader
from holdfast.store.tasks import Asked, DecisionPlace, TaskQuery


def inboxes(actor: Actor) -> tuple[Asked, ...]:
    """The inboxes that an actor looks into: his own, or that of whom he stands in for, and those of his roles."""
    own = Asked("user", actor.on_behalf_of or actor.id)
    return (own, *(Asked("role", role) for role in sorted(actor.roles)))


def tasks_of(reader: Reader, query: TaskQuery, after: views.HumanTask | None) -> list[views.HumanTask]:
    """A page of open questions."""
    place = None if after is None else TaskPlace(after.asked_at, after.instance, after.step_number)
    return [views.listed_task(each) for each in reader.open_tasks(structs.replace(query, after=place))]


def decision_place(after: views.DecidedTask) -> DecisionPlace:
    """Where a page ended."""
    return DecisionPlace(
        after.decision.decided_at, after.task.instance, after.task.step_number, after.decision.sequence
    )


def detailed(desk: Desk, reader: Reader, instance: InstanceId, number: int) -> views.TaskDetails:
    """A question with all that belongs to it."""
    header = workflow_row(reader, instance)
    task = next((each for each in reader.rows(TASKS, instance) if each.number == number), None)
    if task is None:
        raise NotFoundError("task", f"{instance}:{number}", hint="take it from a list of tasks")
    node = graph_of(desk, header).nodes.get(task.node)
    op = node.op if node is not None and isinstance(node.op, Human) else Human(outcomes=())
    return views.task_details(
        task,
        header,
        outcomes=list(op.outcomes),
        form=op.form,
        people=[views.task_person(each) for each in reader.rows(TASK_PEOPLE, instance) if each.number == number],
        decisions=[
            views.task_decision(each) for each in reader.rows(TASK_DECISIONS, instance) if each.number == number
        ],
        comments=[views.task_comment(each) for each in reader.rows(TASK_COMMENTS, instance) if each.number == number],
    )
