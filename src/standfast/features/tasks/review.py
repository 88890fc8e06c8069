"""Looks again whether open questions can be decided: people lose roles, leave, go away and come back, and no run hears of that by itself.

Each round reads whom open questions ask, each name once, and what the directory says of them. Where that has changed, the questions that ask this
name are found by the index and judged, as the run itself would judge them. A run whose answer would be another one is told. So it costs little
while nothing changes, and finds what ends by time, what other processes wrote, and what a directory of the host's own says.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, cast
from uuid import UUID

import msgspec

from standfast.calls.context import CallContext, nothing
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.common.handlers import EffectContext, Fail
from standfast.engine.concurrency.replies import Reply
from standfast.errors import StandfastError, StoppedError
from standfast.graph.values.approver_rules import USER
from standfast.kernel.actor import SYSTEM, RequestContext
from standfast.kernel.decision import Decision
from standfast.kernel.durations import later
from standfast.kernel.facts import Facts
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import TaskPlace
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import FindPeople, Notify
from standfast.machine.model.queries.eligibility import givers_of
from standfast.machine.model.state import RunState
from standfast.machine.tasks.notifications import OF_QUESTIONS
from standfast.machine.tasks.review import asks_of, review_of
from standfast.notifications.templates import occasion_of
from standfast.people.approvers import ApproverResolver
from standfast.people.directory import Directory, Look
from standfast.people.directory_tables import TableDirectory
from standfast.store.ports.maintenance import AskedName, Deputed
from standfast.store.ports.tasks import AssigneeRecord, TaskQuery

_log = logging.getLogger("standfast.housekeeping")

_EVERY = timedelta(seconds=20)
"""Between two looks at whom open questions ask, of all processes together."""
_TURN = "$review"
_PAGE = 1000
_MOST_TASKS, _MOST_RUNS = 200, 50
"""Questions, and runs that wait because nobody could decide, that one round looks at."""
_FEW = 3
"""Holders of a role, up to which who else is kept apart may leave nobody."""
_MOST_SEARCHES = 5
"""Searches that one question takes: its chain, and then its people."""


class _Standing(NamedTuple):
    """What the directory says of a name that questions ask."""

    told: object
    """Differs whenever something has changed that matters to a question."""
    is_sure: bool
    """Whether whoever is asked by this name can decide, whoever may not."""


class _Work(NamedTuple):
    """Questions that ask a name, behind a place in the list of them."""

    name: AskedName
    after: TaskPlace | None


Deliver: TypeAlias = Callable[[EffectContext, Notify], c.EndNotice | None]
"""Delivers a notice, or raises; what it returns is for the run."""
_Place = tuple[str, InstanceId, int, int]
"""A place among those whom a question asks."""


class TaskReview:
    """Judges open questions again. One thread asks for a round; the directory is asked on threads that it may keep waiting."""

    def __init__(self, desk: CallContext, finder: ApproverResolver) -> None:
        self._desk = desk
        self._finder = finder
        self._directory: Directory = desk.directory
        if isinstance(self._directory, TableDirectory):
            self._directory.listen(self.changed)
        self._known: dict[AskedName, object] = {}
        """What the directory said of each name at the last look."""
        self._work: deque[_Work] = deque()
        self._deputies: dict[_Place, object] = {}
        """What the directory said, at the last look, of whoever is asked in the place of another, and of those whose place it is."""
        self._relied: dict[_Place, list[str]] = {}
        """All on whom that depends, as was found when its question was judged last."""
        self._handed: deque[Deputed] = deque()
        """Questions to them that are to be judged again."""
        self._told: list[tuple[str, InstanceId, int]] = []
        """Questions whose runs were told something since the last look. An answer that was looked up before may have come after it."""
        self._changed: set[str] = set()
        """Tenants whose directory this process has changed since the last look."""
        self._lock = threading.Lock()
        self._due_at: datetime | None = None
        self._offset = 0
        """How many of the runs that wait for somebody who can decide were looked at on this way through them."""
        self._round: Reply[None] | None = None

    def changed(self, tenant: str) -> None:
        """Somebody of a tenant was changed here: look soon."""
        with self._lock:
            self._changed.add(tenant)

    def look(self) -> None:
        """A round, unless the last one has not come to its end; without threads, as many as there is work for."""
        while self._round is None or self._round.done():
            if self._round is not None and (error := self._round.exception()) is not None:
                self._put_off(error)
                return
            self._round = None
            if not self._is_due():
                return
            self._round = self._desk.consult(self._look)

    def _put_off(self, error: BaseException) -> None:
        """A round has failed: the next one begins after the usual time."""
        if not isinstance(error, StoppedError):
            _log.warning("review_of_tasks_failed error=%s", error)
        self._work.clear()
        self._handed.clear()
        self._round, self._due_at = None, later(self._desk.service.shared.clock.now(), _EVERY)

    def _is_due(self) -> bool:
        now = self._desk.service.shared.clock.now()
        is_time = self._due_at is None or not self._due_at - _EVERY <= now < self._due_at
        return bool(self._work or self._handed or self._changed or is_time)

    def _look(self) -> None:
        service = self._desk.service
        now = service.shared.clock.now()
        with self._lock:
            changed, self._changed = self._changed, set()
        if self._due_at is None or not self._due_at - _EVERY <= now < self._due_at:
            self._due_at = now + _EVERY
            told, self._told = self._told, []
            for each in told:
                self._judge(*each)
            if self._is_turn():
                self._look_at_names(None)
                self._look_at_deputies(None)
                self._look_at_waiting()
        for tenant in changed:
            self._look_at_names(tenant)
            self._look_at_deputies(tenant)
            self._look_at_waiting(tenant)
        self._work_off()

    def _is_turn(self) -> bool:
        """Whether anybody is asked anything or nobody could be, and no other process has looked a moment ago."""
        service = self._desk.service
        moment = service.shared.clock.judge()
        is_asked = service.survey(lambda parts: parts.incidents().asked(after=None, limit=1))
        if not is_asked and not service.survey(lambda parts: parts.incidents().undecidable(limit=1)):
            return False
        return service.operate(lambda parts: parts.workers().announce(_TURN, every=_EVERY, now=moment))

    # -- whom questions ask

    def _look_at_names(self, tenant: str | None) -> None:
        """Note what the directory says of each name; questions that ask one of which it says something else are judged again."""
        seen: dict[AskedName, object] = {}
        for names in self._names(tenant):
            for name, standing in self._standings(names):
                before = self._known.get(name)
                is_new = before is None and tenant is None  # Of a tenant that has just changed nothing is sure.
                if before != standing.told and not (is_new and standing.is_sure):
                    self._work.append(_Work(name, None))
                seen[name] = standing.told
        kept = {} if tenant is None else {name: told for name, told in self._known.items() if name.tenant != tenant}
        self._known = kept | seen

    def _names(self, tenant: str | None) -> Iterator[list[AskedName]]:
        """Whom open questions ask, of one tenant or of all, in pages of one tenant each."""
        after = None if tenant is None else AskedName(tenant, "role", "")
        service = self._desk.service
        while True:
            page = service.survey(lambda parts, after=after: parts.incidents().asked(after=after, limit=_PAGE))  # type: ignore[misc]
            for each in dict.fromkeys(name.tenant for name in page):
                if tenant in {None, each}:
                    yield [name for name in page if name.tenant == each]
            if len(page) < _PAGE or (tenant is not None and page[-1].tenant != tenant):
                return
            after = page[-1]

    def _standings(self, names: Sequence[AskedName]) -> list[tuple[AskedName, _Standing]]:
        tenant, now = names[0].tenant, self._desk.service.shared.clock.now()
        if self._directory.is_known_empty(tenant, now):
            return []
        with self._directory.looking(tenant) as rows:
            look = Look(rows, now)
            if look.is_empty():
                self._directory.note_empty(tenant, now)
                return []
            return [(each, _role_of(look, each.name)) for each in names if each.kind == "role"] + [
                (each, _person_of(look, each.name)) for each in names if each.kind == "user"
            ]

    # -- whom questions ask in the place of others

    def _look_at_deputies(self, tenant: str | None) -> None:
        """The same for those who are asked in the place of others: they decide no longer than whoever they have it from could.

        Somebody else may be between these two. So a change in the directory of a tenant has all of its questions judged again.
        """
        seen: dict[_Place, object] = {}
        for rows in self._deputed(tenant):
            for row, told in self._deputies_of(rows):
                place = row[:4]
                if tenant is not None or self._deputies.get(place) != told:
                    self._handed.append(row)
                seen[place] = told
        kept = {} if tenant is None else {at: told for at, told in self._deputies.items() if at[0] != tenant}
        self._deputies = kept | seen
        self._relied = {at: names for at, names in self._relied.items() if at in self._deputies}

    def _deputed(self, tenant: str | None) -> Iterator[list[Deputed]]:
        """The rows of them, of one tenant or of all, in pages of one tenant each."""
        after = None if tenant is None else Deputed(tenant, InstanceId(UUID(int=0)), 0, 0, "", "", "")
        service = self._desk.service
        while True:
            page = service.survey(lambda parts, after=after: parts.incidents().deputed(after=after, limit=_PAGE))  # type: ignore[misc]
            for each in dict.fromkeys(row.tenant for row in page):
                if tenant in {None, each}:
                    yield [row for row in page if row.tenant == each]
            if len(page) < _PAGE or (tenant is not None and page[-1].tenant != tenant):
                return
            after = page[-1]

    def _deputies_of(self, rows: Sequence[Deputed]) -> list[tuple[Deputed, object]]:
        tenant, now = rows[0].tenant, self._desk.service.shared.clock.now()
        if self._directory.is_known_empty(tenant, now):
            return []
        with self._directory.looking(tenant) as found:
            look = Look(found, now)
            if look.is_empty():
                return []
            names = sorted({name for row in rows for name in self._people_of(row)})
            crowd, roles = look.crowd(names), look.roles(names)
            told = {
                name: (
                    crowd.is_active(name),
                    name in crowd.absent,
                    tuple(
                        sorted((each.receiver, each.role, each.definition) for each in crowd.delegations.get(name, ()))
                    ),
                    tuple(sorted(roles[name])),
                )
                for name in names
            }
            return [(row, tuple((name, told[name]) for name in self._people_of(row))) for row in rows]

    def _people_of(self, row: Deputed) -> list[str]:
        """Those on whom it depends whether somebody may decide in the place of another."""
        return self._relied.get(row[:4]) or [row.name, row.stands_for]

    # -- questions

    def _work_off(self) -> None:
        left = _MOST_TASKS
        while self._handed and left > 0:
            row = self._handed.popleft()
            self._judge(row.tenant, row.instance, row.number, place=row)
            left -= 1
        while self._work and left > 0:
            name, after = self._work.popleft()
            query = TaskQuery(people=(AssigneeRecord(name.kind, name.name),), after=after, limit=left)
            found = self._of(name.tenant).reader.open_tasks(query)
            for each in found:
                self._judge(name.tenant, each.task.instance, each.task.number)
            if len(found) == left:
                self._work.appendleft(_Work(name, found[-1].place))
            left -= len(found)

    def _look_at_waiting(self, tenant: str = "") -> None:
        """Runs that wait because nobody could decide: somebody may be able to by now, also where nobody was found at all."""
        waiting = self._desk.service.survey(lambda parts: parts.incidents().undecidable(limit=_PAGE))
        mine = [each for each in waiting if tenant in {"", each.tenant}]
        first = self._offset if self._offset < len(mine) else 0
        for each in mine[first : first + _MOST_RUNS]:
            self._judge(each.tenant, each.instance)
        self._offset = 0 if first + _MOST_RUNS >= len(mine) else first + _MOST_RUNS

    def _judge(self, tenant: str, instance: InstanceId, number: int = 0, *, place: Deputed | None = None) -> None:
        """Judge one question of a run, or all that nobody could decide; what cannot be found out now is left as it is."""
        try:
            tracked = self._folded(tenant, instance)
            if tracked is None:
                return
            state = cast("RunState", tracked.state)
            if place is not None and number in state.questions:
                seat = state.questions[number].seats[place.place - 1]
                self._relied[place[:4]] = sorted({seat.person.name, *givers_of(seat), *seat.lent, *seat.lent.values()})
            numbers = [number] if number else [each for each, known in state.questions.items() if known.trouble]
            for each in numbers:
                command = self._verdict(tracked, each)
                if command is not None:
                    self._tell(tenant, instance, command)
                    self._told.append((tenant, instance, each))
        except (StandfastError, Fail, OSError) as error:
            _log.warning("review_of_task_failed instance=%s step=%s error=%s", instance, number, error)

    def delivering(self, deliver: Deliver) -> Deliver:
        """Return a handler of notices that delivers those whose recipients are still asked."""

        def run(context: EffectContext, notice: Notify) -> c.EndNotice | None:
            is_wanted = self.still_asks(context.tenant, context.instance, notice)
            return deliver(context, notice) if is_wanted else None

        return run

    def still_asks(self, tenant: str, instance: InstanceId, notice: Notify) -> bool:
        """Return whether a notice of a question is about one that is open, and its recipient can still decide it.

        Holders of a role are looked up when the notice is delivered. To a deactivated person the delivery itself sends nothing.
        """
        tracked = self._folded(tenant, instance) if occasion_of(notice.key) in OF_QUESTIONS else None
        if tracked is None:
            return True
        state, machine = cast("RunState", tracked.state), cast("GraphMachine", tracked.program.decider)
        routes = machine.routes_of(state)
        step = state.open.get(notice.step) or state.frozen.get(notice.step)
        if step is None:
            return False
        errand = review_of(routes, state, step)
        if notice.kind == "role" or errand is None:
            return True
        own = [place for place, each in enumerate(errand.people) if (each.kind, each.name) == ("user", notice.to)]
        if not own:
            return False
        errand = msgspec.structs.replace(
            errand,
            people=[errand.people[place] for place in own],
            hands=[errand.hands[place] for place in own] if errand.hands else [],
            lent=[errand.lent[place] for place in own] if errand.lent else [],
        )
        found = self._finder.reviewed(tenant, tracked.header.definition, errand)
        if len(found.lost) < len(own):
            return True
        return any(not each.is_active for each in self._of(tenant).told_of([notice.to]))

    def _folded(self, tenant: str, instance: InstanceId) -> CachedInstance | None:
        desk = self._of(tenant)
        with desk.reader.look() as reader:
            tracked = desk.folded(reader, desk.address(instance=instance))
        is_run = tracked is not None and isinstance(tracked.program.decider, GraphMachine)
        return tracked if is_run else None

    def _verdict(self, tracked: CachedInstance, number: int) -> c.Command | None:
        """What a run has to be told about one of its questions; None if it would change nothing."""
        trial = _Trial(tracked, self._desk.service.shared.clock.now(), self._desk.facts(tracked.header))
        step = trial.state.open.get(number)
        if step is None:
            return None
        errand = review_of(trial.machine.routes_of(trial.state), trial.state, step)
        if errand is not None:
            found = self._finder.reviewed(tracked.header.tenant, tracked.header.definition, errand)
            if trial.decided(found) is not None:
                return found
        question = trial.state.questions.get(number)
        again = c.AskAgain(step=number)
        return again if question is not None and question.trouble and self._would_find(trial, again) else None

    def _would_find(self, trial: _Trial, again: c.AskAgain) -> bool:
        """Whether somebody would be asked who can decide, if those who are to be asked were looked for now."""
        command: c.Command = again
        for _ in range(_MOST_SEARCHES):
            decision = trial.decided(command, keeps=True)
            if decision is None:
                return False
            search = next((each.body for each in decision.effects if isinstance(each.body, FindPeople)), None)
            if search is None:
                return _is_answerable(trial, again.step)
            header = trial.tracked.header
            command = self._finder.found(header.tenant, header.definition, _without_turns(search))
        return False

    def _tell(self, tenant: str, instance: InstanceId, command: c.Command) -> None:
        desk = self._of(tenant)
        desk.command(desk.address(instance=instance), command, nothing, may_create=False, is_unasked=True)

    def _of(self, tenant: str) -> CallContext:
        return self._desk.acting(RequestContext(tenant=tenant, actor=SYSTEM))


class _Trial:
    """A run on which commands are tried."""

    def __init__(self, tracked: CachedInstance, now: datetime, facts: Facts) -> None:
        assert isinstance(tracked.program.decider, GraphMachine)
        self.tracked = tracked
        self.machine: GraphMachine = tracked.program.decider
        self.state = cast("RunState", tracked.state)
        self._program: Program = tracked.program
        header = tracked.header
        self._moment = Moment(
            now=now,
            instance=header.id,
            key=header.key,
            tenant=header.tenant,
            partition=header.partition,
            version=header.version,
            issued=header.issued,
            commits=header.commits,
            pending_timers={key: each.due_at for key, each in tracked.timers.items()},
            facts=facts,
        )

    def decided(self, command: c.Command, *, keeps: bool = False) -> Decision | None:
        """What the run would decide; None if nothing would change. With `keeps` the next command is tried on what it leaves."""
        state = self._program.restore(self._program.snapshot(self.state))
        answer = self._program.answer(state, command, self._moment)
        if not isinstance(answer, Decision):
            return None
        if keeps:
            self.state = cast("RunState", answer.state)
        return answer


def _is_answerable(trial: _Trial, number: int) -> bool:
    """Whether somebody who can decide would be asked, and nobody is left out whom the definition names."""
    step, question = trial.state.open.get(number), trial.state.questions.get(number)
    if step is None or question is None or question.trouble or question.is_looking:
        return False
    people = {name for _, seat in question.asked for name in (seat.person.name, seat.person.for_)}
    asks = asks_of(trial.machine.routes_of(trial.state), question, step)
    return all(each.of in people for each in asks if each.by == USER)


def _without_turns(search: FindPeople) -> FindPeople:
    """The same search without counting whose turn it is, because nobody is asked by it."""
    asks = [msgspec.structs.replace(each, pick="all") if each.pick == "in_turn" else each for each in search.asks]
    return msgspec.structs.replace(search, asks=asks)


def _role_of(look: Look, role: str) -> _Standing:
    if not look.rows.has_grants():
        return _Standing("no grants", is_sure=True)
    holders = look.holders(role)
    crowd = look.crowd(holders)
    able = [each for each in holders if crowd.is_active(each)]
    stand_ins = sorted((giver, each.receiver) for giver, given in crowd.delegations.items() for each in given)
    return _Standing((tuple(able), tuple(stand_ins)), is_sure=len(able) > _FEW)


def _person_of(look: Look, name: str) -> _Standing:
    crowd = look.crowd([name])
    stand_ins = tuple(sorted(each.receiver for each in crowd.delegations.get(name, ())))
    roles = tuple(sorted(look.roles([name])[name]))
    told = (crowd.is_active(name), name in crowd.absent, stand_ins, roles)
    return _Standing(told, is_sure=crowd.is_active(name))
