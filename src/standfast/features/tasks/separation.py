"""The open questions of somebody, listed and counted alike, without those that they may not decide.

Four eyes keep them out, those who are asked have to decide themselves, or the role is gone by which they were asked: such a question is
none of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from msgspec import structs

from standfast.calls.context import CallContext
from standfast.calls.fact_source import ReadFacts
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.common.pauses import holds_timers
from standfast.errors import DefinitionError, NotFoundError, UnknownEventError
from standfast.features.runs.reads import folded_workflow, graph_of
from standfast.features.runs.views import HumanTask, kept_out_of
from standfast.features.tasks.authorization import person_of_row
from standfast.features.tasks.reads import inboxes, place_of, rows_of
from standfast.features.tasks.views import TaskCounts, listed_task
from standfast.graph.index import GraphIndex
from standfast.graph.model import Graph, HumanOp
from standfast.kernel.facts import PersonFact, person_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import TASKS, StoredTask
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE, StoredDecision, StoredPerson
from standfast.kernel.rows import RowKind
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

S = TypeVar("S", StoredPerson, StoredDecision, StoredTask)
T = TypeVar("T")
_Number = tuple[int, int]
"""Names a question by the numbers of its run and step: Python hashes ids themselves much more slowly."""
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
    """A page of the open questions that one of these asks for, without those that the actor of the desk may not decide.

    Each names for whom the actor has it.
    """
    inbox = _Inbox(desk, reader, authority, told)
    found = inbox.page(queries, rows_of(reader, queries, place_of(after)))
    return [listed_task(each, authority.actor) for each in inbox.for_whom(found)]


def open_in(
    desk: CallContext,
    reader: TenantReader,
    instances: Sequence[InstanceId],
    *,
    authority: Authority,
    told: DirectoryAnswers,
) -> list[InstanceId]:
    """Those of some runs in which a question waits that asks the actor of the desk, and that they may decide."""
    found = {each.int for each in _Inbox(desk, reader, authority, told).asking(instances)}
    return [each for each in instances if each.int in found]


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
    own, overdue = set[_Number](), set[_Number]()
    by_role = dict[str, set[_Number]]()
    looking = _Inbox(desk, reader, authority, told)
    queries = [TaskQuery(people=(each,), definition=name, limit=MOST_COUNTED) for name, each in asked]
    pages = [rows_of(reader, [query], None) for query in queries]
    looking.learn([listed.task.instance for page in pages for listed in page])
    for (_, inbox), query, page in zip(asked, queries, pages, strict=True):
        found = [each.task for each in looking.page([query], page)]
        overdue |= {_number_of(each) for each in found if each.due_at is not None and each.due_at < now}
        (own if inbox.kind == "user" else by_role.setdefault(inbox.name, set())).update(map(_number_of, found))
    counts = {role: len(tasks) for role, tasks in by_role.items() if tasks}
    return TaskCounts(own=len(own), by_role=counts, overdue=len(overdue))


def _number_of(task: StoredTask) -> _Number:
    return task.instance.int, task.number


class _AskedStep(NamedTuple):
    """What the definition says of a step that asks people."""

    op: HumanOp
    is_apart: bool
    """Whether somebody may not decide it because of another step that they have decided."""
    asks_roles: bool


class _AskedPeople(NamedTuple):
    """Who is asked at a step and has not decided."""

    rows: list[StoredPerson]
    has_actor: bool
    """Whether the actor is one of them."""
    has_role: bool
    """Whether a role of the actor is one of them."""

    @property
    def people(self) -> list[Person]:
        """The same as decisions know them."""
        return [person_of_row(each) for each in self.rows]


class _RowsByRun(Generic[S]):
    """The rows of one kind that runs have, read in one statement for all that were learnt of since the last one."""

    def __init__(self, reader: TenantReader, kind: RowKind[S]) -> None:
        self._reader = reader
        self._kind: RowKind[S] = kind
        self._known: dict[int, list[S]] = {}
        """By the number of the id of the run."""
        self._new: list[InstanceId] = []

    def __contains__(self, number: int) -> bool:
        """Whether a run was learnt of."""
        return number in self._known

    def learn(self, instances: Sequence[InstanceId]) -> None:
        """Take note of runs that are not known yet."""
        self._known |= {each.int: [] for each in instances}
        self._new += instances

    def of(self, number: int) -> list[S]:
        """The rows of a run."""
        if self._new:
            for each in self._reader.rows_of(self._kind, self._new):
                self._known[each.instance.int].append(each)
            self._new = []
        return self._known.get(number, [])


class _Inbox:
    """Looks at open questions. The rows of their runs are read for a whole page at once."""

    def __init__(self, desk: CallContext, reader: TenantReader, authority: Authority, told: DirectoryAnswers) -> None:
        self._told = told
        self._desk = desk
        self._reader = reader
        self._authority = authority
        actor = desk.request.actor
        self._names = {actor.id, actor.on_behalf_of} - {""}
        """The names of the actor."""
        self._voters = self._names | {each.id for each in authority.stands_in_for}
        """These, and the names of those for whom the actor stands in."""
        self._acts_for_others = bool(authority.stands_in_for or authority.actor.on_behalf_of)
        """Whether the actor may have decided for somebody else already: nobody counts twice."""
        self._lends_roles = any(each.role for each in authority.stands_in_for)
        self._headers: dict[int, InstanceHeader] = {}
        """Those that exist of the runs that were learnt of, by the number of the id."""
        self._people = _RowsByRun(reader, TASK_PEOPLE)
        self._decisions = _RowsByRun(reader, TASK_DECISIONS)
        self._tasks = _RowsByRun(reader, TASKS)
        self._asked: dict[_Number, _AskedPeople] = {}
        self._facts: dict[str, ReadFacts] = {}
        """What the directory says, by partition."""
        self._steps: dict[tuple[str, str, str], _AskedStep | None] = {}
        self._inboxes: dict[str, set[tuple[str, str]]] = {}

    def page(self, queries: Sequence[TaskQuery], page: Sequence[ListedTask]) -> list[ListedTask]:
        """A page of the open questions that one of these asks for and that the actor may decide; `page` is what is found first."""
        found, limit = list[ListedTask](), queries[0].limit
        while True:
            found += self._decidable(page)
            if len(page) < limit or len(found) >= limit:
                return found[:limit]
            page = rows_of(self._reader, queries, page[-1].place)

    def asking(self, instances: Sequence[InstanceId]) -> list[InstanceId]:
        """Those of some runs in which the actor may decide a question that asks them."""
        self.learn(instances)
        listed = [
            self._listed(header, each)
            for instance in instances
            if (header := self._headers.get(instance.int)) is not None
            for each in self._tasks.of(instance.int)
            if each.closed_at is None
        ]
        return [each.task.instance for each in self._decidable([each for each in listed if each is not None])]

    def for_whom(self, tasks: Sequence[ListedTask]) -> list[ListedTask]:
        """These questions, which were looked at, with those for whom the actor has them by a delegation in the directory."""
        if not self._authority.stands_in_for:
            return list(tasks)
        return [each if each.stands_for else self._for_whom(each) for each in tasks]

    def learn(self, instances: Sequence[InstanceId]) -> None:
        """Take note of runs whose questions are to be looked at."""
        new = {each.int: each for each in instances if each.int not in self._people}
        if not new:
            return
        ids = list(new.values())
        self._headers |= {each.id.int: each for each in self._reader.headers(ids)}
        for rows in (self._people, self._decisions, self._tasks):
            rows.learn(ids)

    def _decidable(self, page: Sequence[ListedTask]) -> Iterator[ListedTask]:
        """Those that the actor may decide, as far as a list can tell. One that only newer code can read is among them."""
        self.learn([each.task.instance for each in page])
        touched = self._touched(page)
        for each in page:
            number = each.task.instance.int
            header = self._headers.get(number)
            is_touched = number in touched or self._has_voted(each.task)
            if header is None or not self._is_barred(header, each, is_touched=is_touched):
                yield each

    def _listed(self, header: InstanceHeader, task: StoredTask) -> ListedTask | None:
        """A question as it is in the actor's list; None if it asks others alone."""
        mine = self._inboxes.get(header.definition)
        if mine is None:
            found = inboxes(self._authority, header.definition)
            mine = self._inboxes[header.definition] = {(each.kind, each.name) for each in found}
        people = self._people.of(task.instance.int)
        seats = [
            each.stands_for
            for each in people
            if each.number == task.number and each.is_open and (each.kind, each.name) in mine
        ]
        if not seats:
            return None
        return ListedTask(
            task=task, definition=header.definition, key=header.key, asked_at=task.opened_at, stands_for=min(seats)
        )

    def _for_whom(self, listed: ListedTask) -> ListedTask:
        asked = self._asked_at(listed.task)
        if asked.has_actor:
            return listed
        names = sorted(self._authority.stood_in_for(asked.people, listed.definition))
        return structs.replace(listed, stands_for=", ".join(names))

    def _is_barred(self, header: InstanceHeader, listed: ListedTask, *, is_touched: bool) -> bool:
        task = listed.task
        try:
            step = self._step(header, task.node)
            if step is None:
                return False
            may_keep_out = (
                is_touched
                or step.is_apart
                or not step.op.self_approval
                or self._acts_for_others
                or bool(listed.stands_for)
            )
            return (
                (may_keep_out and self._is_kept_out(header, listed, step, is_touched=is_touched))
                or self._is_anothers(task, step.op)
                or self._is_not_lent(header, task)
                or self._has_lapsed(header, listed, step)
                or (self._is_held(header) and self._is_over(header, task))
            )
        except (DefinitionError, UnknownEventError):
            return False

    def _step(self, header: InstanceHeader, name: str) -> _AskedStep | None:
        """What the definition of a run says of a step; None if it asks nobody."""
        place = header.definition, header.definition_version, name
        if place not in self._steps:
            graph = graph_of(self._desk, header)
            node = graph.nodes.get(name)
            op = None if node is None else node.op
            found = _AskedStep(op, _is_apart(graph, name), _asks_roles(op)) if isinstance(op, HumanOp) else None
            self._steps[place] = found
        return self._steps[place]

    def _is_kept_out(self, header: InstanceHeader, listed: ListedTask, step: _AskedStep, *, is_touched: bool) -> bool:
        """Whether the run is the actor's own matter, or that of all for whom they would decide; or they have decided what is to be another's.

        Only a run that they have touched, or decided something in, is looked at as a whole.
        """
        task, number = listed.task, listed.task.instance.int
        acts_for_others = self._acts_for_others or bool(listed.stands_for)
        given = self._decisions.of(number) if step.is_apart or acts_for_others else ()
        has_passed = step.is_apart and any(each.status == "overridden" for each in self._tasks.of(number))

        def is_out(names: set[str]) -> bool:
            if not names.isdisjoint(kept_out_of(task)) or (not step.op.self_approval and task.requester in names):
                return True
            has_decided = any(each.actor in names or each.on_behalf_of in names for each in given)
            may_be = is_touched or has_passed or bool(listed.stands_for) or has_decided
            return may_be and self._is_kept_from(header, task, names)

        return all(map(is_out, self._identities(listed)))

    def _has_voted(self, task: StoredTask) -> bool:
        """Whether the actor, or a person for whom they stand in, has decided a question: nobody decides from a second place."""
        names = self._voters
        return any(
            each.number == task.number and not each.is_withdrawn and (each.actor in names or each.on_behalf_of in names)
            for each in self._decisions.of(task.instance.int)
        )

    def _touched(self, page: Sequence[ListedTask]) -> set[int]:
        """The runs of documents that the actor, or whom they stand in for, may have written: few, so that they can be looked at."""
        about = list(dict.fromkeys(each.task.instance for each in page if each.task.document_version))
        if not about or self._desk.request.actor.kind == "system":
            return set()
        return {each.int for each in self._reader.touched_by(sorted(self._voters), about)}

    def _asked_at(self, task: StoredTask) -> _AskedPeople:
        """Who is asked and has not decided."""
        place = number, step = _number_of(task)
        found = self._asked.get(place)
        if found is None:
            rows = [each for each in self._people.of(number) if each.number == step and each.is_open]
            is_asked = self._authority.is_asked
            has_role = is_asked([each for each in rows if each.kind == "role"])
            found = self._asked[place] = _AskedPeople(rows, has_role or is_asked(rows), has_role)
        return found

    def _identities(self, listed: ListedTask) -> list[set[str]]:
        """The names under which the actor could decide: as those who are asked, or for one of those in whose place they are."""
        names, authority = self._names, self._authority
        if listed.stands_for:
            return [names | {listed.stands_for}]
        if not authority.stands_in_for:
            return [names]
        asked = self._asked_at(listed.task)
        if asked.has_actor:
            return [names]
        return [names | {other} for other in sorted(authority.stood_in_for(asked.people, listed.definition))] or [names]

    def _is_kept_from(self, header: InstanceHeader, task: StoredTask, names: set[str]) -> bool:
        """Whether somebody under these names would be refused: as one of those whose document it is, or who has decided what keeps them from it."""
        routes, state = self._folded(header)
        step = state.open.get(task.number)
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

    def _is_over(self, header: InstanceHeader, task: StoredTask) -> bool:
        """Whether nobody can decide it any more, because its time is over while the run is held up."""
        tracked, now = folded_workflow(self._desk, self._reader, header.id), self._desk.service.shared.clock.now()
        pending = self._desk.service.standing.due(header, tracked.program.language, tracked.timers, now)
        routes, state = _known_of(tracked)
        step = state.open.get(task.number)
        return step is not None and is_over(routes, state, step, now, pending=pending)

    def _is_anothers(self, task: StoredTask, op: HumanOp) -> bool:
        """Whether those who are asked have to decide themselves, and the actor only stands in for them."""
        authority = self._authority
        if op.delegable or not self._acts_for_others:
            return False
        if authority.actor.on_behalf_of:
            return True
        return not self._asked_at(task).has_actor

    def _is_not_lent(self, header: InstanceHeader, task: StoredTask) -> bool:
        """Whether it asks by name, or by another role, for whom the actor stands in as holder of one role."""
        if not self._lends_roles:
            return False
        return not self._authority.is_one_of(self._asked_at(task).people, definition=header.definition)

    def _has_lapsed(self, header: InstanceHeader, listed: ListedTask, step: _AskedStep) -> bool:
        """Whether the actor was asked as holder of a role, or in the place of others, and that is over: for them, or for whom they would decide."""
        task, authority = listed.task, self._authority
        if not (step.asks_roles or listed.stands_for) or (task.role and task.role in authority.actor.roles):
            return False
        if self._asked_at(task).has_role:
            return False
        roles = {authority.actor.id: authority.actor.roles} | {each.id: each.roles for each in authority.stands_in_for}
        routes, state = self._folded(header)
        open_step = state.open.get(task.number)
        if open_step is None:
            return False
        seats = [each for each in question_of(routes, state, open_step).seats if each.is_free]
        own = [each for each in seats if each.person.kind == "user" and each.person.name in roles]
        facts = self._facts.get(header.partition)
        if facts is None:
            facts = self._facts[header.partition] = self._desk.facts(header)
        known = partial(_known, facts, self._told)
        return bool(own) and all(
            _is_over(known, each.person, roles.get(each.person.for_ or each.person.name))
            or given_lapse(each, header.definition, known)
            for each in own
        )

    def _folded(self, header: InstanceHeader) -> tuple[GraphIndex, RunState]:
        found = self._desk.seen(self._reader, header)
        if found is None or not isinstance(found.state, RunState):
            raise NotFoundError("workflow instance", header.id)
        return _known_of(found)


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


def _known(facts: ReadFacts, told: DirectoryAnswers, name: str) -> PersonFact | None:
    """What the directory has of a person; None if it has nobody, or is the host's and has still to be asked."""
    found = told.people.get(name) or facts.get(person_fact(name)).value
    assert isinstance(found, PersonFact)
    if found.is_elsewhere:
        told.missing.add(name)
    return found if found.is_kept else None
