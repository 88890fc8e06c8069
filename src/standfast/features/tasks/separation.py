"""The open questions of somebody, listed and counted alike, without those that they may not decide.

Four eyes keep them out, those who are asked have to decide themselves, or the role is gone by which they were asked: such a question is
none of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from standfast.calls.context import CallContext
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.common.pauses import holds_timers
from standfast.errors import DefinitionError, UnknownEventError
from standfast.features.runs.reads import folded_workflow, graph_of
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.authorization import open_people
from standfast.features.tasks.reads import inboxes, tasks_of
from standfast.features.tasks.views import TaskCounts, listed_task
from standfast.graph.index import GraphIndex
from standfast.graph.model import Graph, HumanOp
from standfast.kernel.actor import Actor
from standfast.kernel.facts import PersonFact, person_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import TASKS, StoredTask
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE, StoredPerson
from standfast.machine.flow.deadline_checks import is_over
from standfast.machine.machine import GraphMachine
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.queries.eligibility import givers_of, name_refusal, question_of
from standfast.machine.model.state import RunState
from standfast.machine.tasks.entitlement import given_lapse
from standfast.people.authority import Authority
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.tasks import ListedTask, TaskQuery
from standfast.store.records.instances import InstanceHeader

T = TypeVar("T")
MOST_COUNTED = 1000
"""Questions of somebody that are looked at one by one in order to count them."""


class DirectoryAnswers:
    """What a directory of the host has said of people for one list, and whom it is still to be asked about."""

    def __init__(self) -> None:
        self.people: dict[str, PersonFact] = {}
        self.missing: set[str] = set()


def looked(desk: CallContext, question: Callable[[TenantReader, DirectoryAnswers], T]) -> T:
    """Ask the database what depends on people. A directory of the host is asked about them while no question of the database is open."""
    told = DirectoryAnswers()
    while True:
        with desk.reader.look() as reader:
            found = question(reader, told)
        if not told.missing:
            return found
        told.people |= {each.id: each for each in desk.told_of(told.missing)}
        told.missing = set()


def open_to(
    desk: CallContext,
    reader: TenantReader,
    queries: Sequence[TaskQuery],
    after: HumanTask | None,
    *,
    authority: Authority,
    told: DirectoryAnswers,
) -> list[HumanTask]:
    """A page of the open questions that one of these asks for, without those that the actor of the desk may not decide."""
    found, limit, inbox = list[HumanTask](), queries[0].limit, _Inbox(desk, reader, authority, told)
    while True:
        page = tasks_of(reader, queries, after, authority.actor)
        found += inbox.decidable(page)
        if len(page) < limit or len(found) >= limit:
            return found[:limit]
        after = page[-1]


def open_in(
    desk: CallContext,
    reader: TenantReader,
    instances: Sequence[InstanceId],
    *,
    authority: Authority,
    told: DirectoryAnswers,
) -> list[InstanceId]:
    """Those of some runs in which a question waits that asks the actor of the desk, and that they may decide."""
    found = set(_Inbox(desk, reader, authority, told).asking(instances))
    return [each for each in instances if each in found]


def counted(desk: CallContext, reader: TenantReader, authority: Authority, told: DirectoryAnswers) -> TaskCounts:
    """How many questions are in each inbox of somebody; beyond a bound as the database counts them."""
    now = desk.service.shared.clock.now()
    people = inboxes(authority)
    stored = reader.count_tasks(people)
    if sum(each.tasks for each in stored) > MOST_COUNTED:
        return TaskCounts(
            own=sum(each.tasks for each in stored if each.kind == "user"),
            by_role={each.name: each.tasks for each in stored if each.kind == "role"},
            overdue=reader.count_overdue(people, now),
            is_exact=False,
        )
    known = {(each.kind, each.name) for each in stored}
    asked = [("", each) for each in people if (each.kind, each.name) in known]
    for name in sorted({each.definition for each in authority.stands_in_for if each.definition}):
        asked += [(name, each) for each in inboxes(authority, name) if each not in people]
    own, overdue = set[str](), set[str]()
    by_role = dict[str, set[str]]()
    for definition, inbox in asked:
        query = TaskQuery(people=(inbox,), definition=definition, limit=MOST_COUNTED)
        found = open_to(desk, reader, [query], None, authority=authority, told=told)
        overdue |= {each.step_id for each in found if each.due_at is not None and each.due_at < now}
        (own if inbox.kind == "user" else by_role.setdefault(inbox.name, set())).update(each.step_id for each in found)
    counts = {role: len(tasks) for role, tasks in by_role.items() if tasks}
    return TaskCounts(own=len(own), by_role=counts, overdue=len(overdue))


class _Inbox:
    """Looks at the questions of one page."""

    def __init__(self, desk: CallContext, reader: TenantReader, authority: Authority, told: DirectoryAnswers) -> None:
        self._told = told
        self._desk = desk
        self._reader = reader
        self._authority = authority

    def decidable(self, page: Sequence[HumanTask]) -> Iterator[HumanTask]:
        """Those that the actor may decide, as far as a list can tell. One that only newer code can read is among them."""
        instances = list(dict.fromkeys(each.instance for each in page))
        headers = {each.id: each for each in self._reader.headers(instances)}
        touched, voted = self._touched(page), self._voted(instances)
        for each in page:
            header = headers.get(each.instance)
            is_touched = each.instance in touched or (each.instance, each.step_number) in voted
            if header is None or not self._is_barred(header, each, is_touched=is_touched):
                yield each

    def asking(self, instances: Sequence[InstanceId]) -> Iterator[InstanceId]:
        """Those of some runs in which the actor may decide a question that asks them."""
        asked: dict[tuple[InstanceId, int], list[StoredPerson]] = {}
        for each in self._reader.rows_of(TASK_PEOPLE, instances):
            if each.is_open:
                asked.setdefault((each.instance, each.number), []).append(each)
        headers = {each.id: each for each in self._reader.headers(instances)}
        listed = [
            self._listed(headers[each.instance], each, asked.get((each.instance, each.number), []))
            for each in self._reader.rows_of(TASKS, instances)
            if each.closed_at is None and each.instance in headers
        ]
        return (each.instance for each in self.decidable([each for each in listed if each is not None]))

    def _listed(self, header: InstanceHeader, task: StoredTask, people: Sequence[StoredPerson]) -> HumanTask | None:
        """A question as it is in the actor's list; None if it asks others alone."""
        mine = {(each.kind, each.name) for each in inboxes(self._authority, header.definition)}
        seats = [each.stands_for for each in people if (each.kind, each.name) in mine]
        if not seats:
            return None
        listed = ListedTask(
            task=task, definition=header.definition, key=header.key, asked_at=task.opened_at, stands_for=min(seats)
        )
        return listed_task(listed, self._authority.actor)

    def _is_barred(self, header: InstanceHeader, task: HumanTask, *, is_touched: bool) -> bool:
        try:
            node = graph_of(self._desk, header).nodes.get(task.name)
            if node is None or not isinstance(node.op, HumanOp):
                return False
            op, is_apart = node.op, _is_apart(graph_of(self._desk, header), task.name)
            may_keep_out = is_touched or is_apart or not op.self_approval or self._acts_for_others(task)
            return (
                (may_keep_out and self._is_kept_out(header, task, op, is_apart=is_apart, is_touched=is_touched))
                or self._is_anothers(task, node.op)
                or self._is_not_lent(header, task)
                or self._has_lapsed(header, task, node.op)
                or (self._is_held(header) and self._is_over(header, task))
            )
        except (DefinitionError, UnknownEventError):
            return False

    def _is_kept_out(
        self, header: InstanceHeader, task: HumanTask, op: HumanOp, *, is_apart: bool, is_touched: bool
    ) -> bool:
        """Whether the run is the actor's own matter, or that of all for whom they would decide; or they have decided what is to be another's.

        Only a run that they have touched, or decided something in, is looked at as a whole.
        """
        acts_for_others = self._acts_for_others(task)
        given = list(self._reader.rows(TASK_DECISIONS, header.id)) if is_apart or acts_for_others else []
        has_passed = is_apart and any(each.status == "overridden" for each in self._reader.rows(TASKS, header.id))

        def is_out(names: set[str]) -> bool:
            if not names.isdisjoint(task.kept_out) or (not op.self_approval and task.requester in names):
                return True
            has_decided = any(names & {each.actor, each.on_behalf_of} for each in given)
            may_be = is_touched or has_passed or has_decided or task.stands_for
            return bool(may_be) and self._is_kept_from(header.id, task, names)

        return all(map(is_out, self._identities(task)))

    def _acts_for_others(self, task: HumanTask) -> bool:
        """Whether the actor would decide for somebody else, or may have done so already: nobody counts twice."""
        return bool(task.stands_for or self._authority.stands_in_for or self._authority.actor.on_behalf_of)

    def _voted(self, instances: Sequence[InstanceId]) -> set[tuple[InstanceId, int]]:
        """Return the questions that the actor, or a person for whom they stand in, has decided: nobody decides from a second place."""
        names = _names(self._desk.request.actor) | {each.id for each in self._authority.stands_in_for}
        return {
            (each.instance, each.number)
            for each in self._reader.rows_of(TASK_DECISIONS, instances)
            if not each.is_withdrawn and not names.isdisjoint({each.actor, each.on_behalf_of})
        }

    def _touched(self, page: Sequence[HumanTask]) -> set[InstanceId]:
        """The runs of documents that the actor, or whom they stand in for, may have written: few, so that they can be looked at."""
        about = list(dict.fromkeys(each.instance for each in page if each.document_version))
        actor = self._desk.request.actor
        names = _names(actor) | {each.id for each in self._authority.stands_in_for}
        return self._reader.touched_by(sorted(names), about) if about and actor.kind != "system" else set()

    def _identities(self, task: HumanTask) -> list[set[str]]:
        """The names under which the actor could decide: as those who are asked, or for one of those in whose place they are."""
        names, authority = _names(self._desk.request.actor), self._authority
        if task.stands_for:
            return [names | {task.stands_for}]
        if not authority.stands_in_for:
            return [names]
        people = open_people(self._reader, task.instance, task.step_number)
        others = set() if authority.is_asked(people) else authority.stood_in_for(people, task.definition)
        return [names | {other} for other in sorted(others)] or [names]

    def _is_kept_from(self, instance: InstanceId, task: HumanTask, names: set[str]) -> bool:
        """Whether somebody under these names would be refused: as one of those whose document it is, or who has decided what keeps them from it."""
        routes, state = self._folded(instance)
        step = state.open.get(task.step_number)
        if step is None:
            return False
        seats = [each for each in question_of(routes, state, step).seats if each.is_free]
        own = next((each for each in seats if each.person.kind == "user" and each.person.name in names), None)
        return bool(name_refusal(routes, state, step, names | givers_of(own)))

    def _is_held(self, header: InstanceHeader) -> bool:
        """Whether timers of a run may not have fired although they are due: it is paused, or its definition, its tenant or everything is; or there is maintenance."""
        standing = self._desk.service.standing
        if self._desk.service.maintenance:
            return True
        return header.status == "paused" or bool(standing.pauses and holds_timers(standing.over(header)))

    def _is_over(self, header: InstanceHeader, task: HumanTask) -> bool:
        """Whether nobody can decide it any more, because its time is over while the run is held up."""
        tracked, now = folded_workflow(self._desk, self._reader, header.id), self._desk.service.shared.clock.now()
        pending = self._desk.service.standing.due(header, tracked.program.language, tracked.timers, now)
        routes, state = _known_of(tracked)
        step = state.open.get(task.step_number)
        return step is not None and is_over(routes, state, step, now, pending=pending)

    def _is_anothers(self, task: HumanTask, op: HumanOp) -> bool:
        """Whether those who are asked have to decide themselves, and the actor only stands in for them."""
        authority = self._authority
        if op.delegable or not (authority.stands_in_for or authority.actor.on_behalf_of):
            return False
        if authority.actor.on_behalf_of:
            return True
        return not authority.is_asked(open_people(self._reader, task.instance, task.step_number))

    def _is_not_lent(self, header: InstanceHeader, task: HumanTask) -> bool:
        """Whether it asks by name, or by another role, for whom the actor stands in as holder of one role."""
        authority = self._authority
        if not any(each.role for each in authority.stands_in_for):
            return False
        people = open_people(self._reader, task.instance, task.step_number)
        return not authority.is_one_of(people, definition=header.definition)

    def _has_lapsed(self, header: InstanceHeader, task: HumanTask, op: HumanOp) -> bool:
        """Whether the actor was asked as holder of a role, or in the place of others, and that is over: for them, or for whom they would decide."""
        authority = self._authority
        if not (_asks_roles(op) or task.stands_for) or (task.role and task.role in authority.actor.roles):
            return False
        people = open_people(self._reader, task.instance, task.step_number)
        if authority.is_asked(each for each in people if each.kind == "role"):
            return False
        roles = {authority.actor.id: authority.actor.roles} | {each.id: each.roles for each in authority.stands_in_for}
        routes, state = self._folded(task.instance)
        step = state.open.get(task.step_number)
        if step is None:
            return False
        seats = [each for each in question_of(routes, state, step).seats if each.is_free]
        own = [each for each in seats if each.person.kind == "user" and each.person.name in roles]
        known = partial(_known, self._desk, header, self._told)
        return bool(own) and all(
            _is_over(known, each.person, roles.get(each.person.for_ or each.person.name))
            or given_lapse(each, header.definition, known)
            for each in own
        )

    def _folded(self, instance: InstanceId) -> tuple[GraphIndex, RunState]:
        return _known_of(folded_workflow(self._desk, self._reader, instance))


def _known_of(tracked: CachedInstance) -> tuple[GraphIndex, RunState]:
    state, machine = tracked.state, tracked.program.decider
    assert isinstance(state, RunState)
    assert isinstance(machine, GraphMachine)
    return machine.routes_of(state), state


def _is_apart(graph: Graph, name: str) -> bool:
    """Whether somebody may not decide a step because of another one that they have decided."""
    people = ((each, node.op) for each, node in graph.nodes.items() if isinstance(node.op, HumanOp))
    return any(
        op.distinct_approvers or name in op.distinct_from or (each == name and op.distinct_from) for each, op in people
    )


def _asks_roles(op: HumanOp) -> bool:
    return bool(op.role or op.chain) or any(each.by == "role" for each in op.all_asks)


def _is_over(known: Callable[[str], PersonFact | None], person: Person, roles: frozenset[str] | None) -> bool:
    """Whether the role is gone by which somebody was asked; `roles` are those that they have, None if nobody has looked."""
    if not person.role:
        return False
    if roles is not None:
        return person.role not in roles
    found = known(person.for_)
    return found is not None and person.role not in found.roles


def _known(desk: CallContext, header: InstanceHeader, told: DirectoryAnswers, name: str) -> PersonFact | None:
    """What the directory has of a person; None if it has nobody, or is the host's and has still to be asked."""
    found = told.people.get(name) or desk.facts(header).get(person_fact(name)).value
    assert isinstance(found, PersonFact)
    if found.is_elsewhere:
        told.missing.add(name)
    return found if found.is_kept else None


def _names(actor: Actor) -> set[str]:
    return {actor.id, actor.on_behalf_of} - {""}
