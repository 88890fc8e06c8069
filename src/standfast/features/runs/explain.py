"""Why a run does not move: everything that can wake it, in words and as data. A run that nothing can wake is an incident.

Events and signals that came, and that are none of those a step waits for: without a word about them nobody finds a condition that never holds, or a name that was misspelt.

What people were to be told and were not: the run goes on without it, so somebody who asks about the run should hear of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from standfast.calls.operator_views import Hold
from standfast.calls.status_text import trouble
from standfast.engine.commit.work_rows import options_of
from standfast.engine.common.settings import Settings
from standfast.engine.common.work_errors import RECALLED
from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.features.runs.remedies import Remedy, RemedyText, remedies
from standfast.features.runs.views import calls_of
from standfast.graph.field_visibility import MASKED
from standfast.graph.index import DATA, EVENT, GraphIndex
from standfast.graph.model import Awaited, Graph, Node, RestOp, WaitEventOp, WaitEventsOp
from standfast.graph.model import StateOp as StateNode
from standfast.graph.nodes.event_wait import KEY, MATCH
from standfast.kernel.actor import SYSTEM, Actor, needed_words
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import STEPS, SUBSCRIPTIONS, TASKS, StoredStep, StoredSubscription, StoredTask
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, TASK_PEOPLE
from standfast.machine import remedies as m
from standfast.machine.documents.visibility import is_for
from standfast.machine.model.commands.timers import step_timer
from standfast.machine.model.engine_tasks import NOTICE_HANDLER
from standfast.machine.model.events import NotificationFailed
from standfast.machine.model.messages import PublishedMessage
from standfast.machine.model.queries.expression_scope import text_names
from standfast.machine.model.state import Data, RunState, StepState
from standfast.machine.nodes import kind_of
from standfast.machine.nodes.event_wait import MOST_REFUSED
from standfast.machine.recovery.fork import paused_problem
from standfast.machine.recovery.pause import OF_A_STEP, REQUESTED
from standfast.machine.remedies import OperationTrials
from standfast.machine.tasks.actions import REASSIGN
from standfast.machine.tasks.assignment import NO_APPROVER
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import (
    DeadLetterRecord,
    InstanceHeader,
    Maintenance,
    StoredEffect,
    StoredMessage,
    StoredTimer,
    Word,
    WorkerRecord,
)

_MOST_UNMATCHED = 100
"""How many events are looked at for each condition; older ones come first."""

_decode = msgspec.json.Decoder(PublishedMessage).decode


def unmatched(
    reader: TenantReader, op: WaitEventsOp, waits: Sequence[StoredSubscription], *, data: Data, now: datetime
) -> list[str]:
    """How many of the events that are kept do not fulfil a condition, in words, with what its last look failed on."""
    found = []
    for wait in waits:
        stored = op.events[wait.place].match
        if stored is None:
            continue
        condition, count, error = Expression.from_data(stored), 0, ""
        for each in reader.kept_for(wait.signal, wait.correlation or "", now=now, after=None, limit=_MOST_UNMATCHED):
            holds, why = _asked(condition, data, _decode(each.data).payload)
            count, error = count + (not holds), why or error
        if count:
            what = "1 event that is kept does" if count == 1 else f"{count} events that are kept do"
            found.append(f"{what} not match {condition.source}" + (f": {error}" if error else ""))
    return found


def unawaited(graph: Graph, signals: Collection[str]) -> str:
    """The signals that are kept for a run although no step of its workflow ever waits for them, in words."""
    awaited = {node.op.signal for node in graph.nodes.values() if isinstance(node.op, WaitEventOp)}
    names = ", ".join(repr(each) for each in signals if each not in awaited)
    return f"; it was told {names}, for which no step of it waits" if names else ""


def _asked(condition: Expression, data: Data, payload: object) -> tuple[bool, str]:
    try:
        return condition.holds({DATA: data, EVENT: payload}), ""
    except ExpressionError as error:
        return False, str(error)


_TYPE = "notification_failed"
_MOST_UNTOLD = 10
"""How many are told, the last ones; the history has them all."""


def untold(reader: TenantReader, program: Program, run: InstanceId) -> Iterator[str]:
    """The last notices that could not be delivered, in words."""
    for stored in [each for each in reader.events(run) if each.type == _TYPE][-_MOST_UNTOLD:]:
        event = program.decode(stored)
        assert isinstance(event, NotificationFailed)
        yield f"{event.to!r} could not be told by {event.channel!r} at {stored.at}: {event.error}"


ReasonKind = Literal[
    "ended",
    "paused",
    "held",
    "dead_letter",
    "maintenance",
    "compensation",
    "running",
    "lost_worker",
    "worker",
    "no_handler",
    "no_worker",
    "retry",
    "delay",
    "errand",
    "timer",
    "signal",
    "transition",
    "event",
    "notice",
    "person",
    "child",
    "branches",
    "message",
    "unreadable",
    "hung",
    "incident",
]

_MOVING = frozenset({"running", "message", "errand"})
"""What goes on by itself, and soon."""
_MOST = 1000
_REQUEUE = "dead_letters.requeue({}) puts it back to work"
_DISCARD = "dead_letters.discard({}) forgets it"
_UNDO = "dead_letters.retry_compensation({}) tries it again"
_LONG = timedelta(minutes=1)
"""A call that takes longer may hang; whoever asks is told what could be done if it does."""
_START = "start"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a run waits for, or that keeps it."""

    kind: ReasonKind
    words: str
    """The same as a sentence."""
    remedy: str = ""
    """What could be done, in words; empty if there is nothing to do but wait."""
    remedies: list[Remedy] = []
    """The calls of it that the run itself takes: each of them was tried on a copy of its state, and would be accepted."""
    since: datetime | None = None
    until: datetime | None = None
    """When it is over by itself; None if that is not known."""
    step: str = ""
    """Name of the step that it is about; empty if it is about the whole run."""
    step_number: int | None = None
    handler: str = ""
    worker: str = ""
    """Who has the handler's call in hand."""
    waits_for: str = ""
    """What would bring the step on: who is asked, the name of a signal or an event, the id of a child."""


class RunExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run does not move, or that it does."""

    instance: InstanceId
    status: str
    is_moving: bool
    """Whether it goes on by itself now: a handler runs, or a message is about to be delivered."""
    is_incident: bool
    """Whether it has not ended and nothing can ever wake it, which should never be."""
    reasons: list[Reason]
    words: str
    """All of it as one text."""
    untold: list[str] = []
    """What people could not be told, in words: a question that nobody knows of may wait for long."""


class Circumstances(NamedTuple):
    """What is known of a run and of the world around it."""

    header: InstanceHeader
    state: RunState
    graph: Graph
    program: Program
    now: datetime
    workers: Sequence[WorkerRecord]
    """Those that are alive."""
    maintenance: Maintenance
    trials: OperationTrials
    """Tells which operations it would accept."""
    words: Collection[Word]
    """The commands that this process can read."""
    settings: Settings
    holds: Sequence[Hold] = ()
    """The pauses of a wider scope that hold it up."""
    silence: str = ""
    """Why the directory of the host cannot be asked; empty if it can."""
    routes: GraphIndex | None = None
    """That of the version which the run follows."""
    reader: Actor = SYSTEM
    """Who asks: what the run has of fields that are for others is masked."""


def why(reader: TenantReader, found: Circumstances) -> RunExplanation:
    """Why a run does not move; `reader` must answer as of the moment that the circumstances are of."""
    header = found.header
    reasons = list(_Look(reader, found).reasons())
    incident = [] if reasons else [_incident(header, m.instead(found.trials))]
    kinds = {each.kind for each in reasons}
    moving = _MOVING - {"errand"} if "held" in kinds else _MOVING  # A pause holds errands; who runs comes to an end.
    moving -= {"message"} if "unreadable" in kinds else set()  # What is behind it waits with it.
    is_moving = bool(kinds & moving) and not kinds & {"maintenance"}
    lost = list(untold(reader, found.program, header.id))
    told = "; ".join([*(each.words for each in (*reasons, *incident)), *lost])
    return RunExplanation(
        instance=header.id,
        status=header.status,
        is_moving=is_moving,
        is_incident=bool(incident),
        reasons=[*reasons, *incident],
        words=f"it moves: {told}" if is_moving else told,
        untold=lost,
    )


def unreadable(header: InstanceHeader, error: str) -> RunExplanation:
    """Of a run whose history or definition this code cannot read: nothing that is asked of it here is carried out."""
    reason = Reason(
        kind="unreadable",
        words=f"its history cannot be read by the code of this process: {error}",
        remedy="start a worker with the code that wrote it; what waits for it moves to the dead letters if there is none",
        since=header.updated_at,
    )
    return RunExplanation(
        instance=header.id,
        status=header.status,
        is_moving=False,
        is_incident=True,
        reasons=[reason],
        words=reason.words,
    )


def _incident(header: InstanceHeader, found: list[m.AcceptedOperation]) -> Reason:
    ends = RemedyText(found).of_run()
    return Reason(
        kind="incident",
        words=f"it has not ended, and nothing can ever wake it: it has stood still since {header.updated_at}",
        remedy="; ".join(
            filter(
                None, ["keep a copy of the database and report it; `verify` tells more, `fork` begins it anew", ends]
            )
        ),
        remedies=remedies(found),
        since=header.updated_at,
    )


class _Look:
    """One look at a run."""

    def __init__(self, reader: TenantReader, found: Circumstances) -> None:
        self._found = found
        self._reader = reader
        instance = found.header.id
        effects, timers = reader.work(instance)
        self._effects: Sequence[StoredEffect] = effects
        self._calls = calls_of(effects, found.program)
        self._timers: dict[str, StoredTimer] = {timer.key: timer for timer in timers}
        self._rows: dict[int, StoredStep] = {row.number: row for row in reader.rows(STEPS, instance)}
        self._tasks: dict[int, StoredTask] = {row.number: row for row in reader.rows(TASKS, instance)}
        self._letters: Sequence[DeadLetterRecord] = reader.dead_letters(instance=instance, limit=_MOST)
        self._messages: Sequence[StoredMessage] = reader.messages(instance, limit=_MOST)
        self._trials = found.trials

    def reasons(self) -> Iterator[Reason]:
        """Everything that the run waits for, the widest first."""
        header, state = self._found.header, self._found.state
        if header.ended_at is not None:
            yield self._ended()
            yield from self._gave_up()
            yield from self._halted()
            return
        yield from self._held()
        yield from self._failed_meanwhile()
        yield from self._gave_up()
        yield from self._turning_back()
        if _START in self._timers:
            until = self._timers[_START].due_at
            yield Reason(kind="timer", words=f"it begins at {until}", since=header.created_at, until=until)
        for step in state.open.values():
            yield from self._call(step) if step.effect is not None else self._wait(step)
        for number in state.stopping:
            yield from self._stopping(number)
        yield from self._errands()
        yield from self._delivering()

    # -- the whole run

    def _ended(self) -> Reason:
        header = self._found.header
        why = trouble(self._found.state)
        told = f"it has ended: {header.status} at {header.ended_at}"
        return Reason(kind="ended", words=f"{told} ({why})" if why else told, since=header.ended_at)

    def _halted(self) -> Iterator[Reason]:
        """A rollback that stands at a compensation whose dead letter somebody has forgotten."""
        rollback = self._found.state.rollback
        if rollback is None or rollback.stuck is None:
            return
        if any(each.source == "compensation" and each.number == rollback.stuck for each in self._letters):
            return
        found = [each for each in m.about_undoing(self._trials) if each.operation == "skip"]
        step = self._found.state.executed[rollback.stuck]
        yield Reason(
            kind="compensation",
            words=f"{step.node!r} is not undone, and its dead letter was discarded; what was done before it is not undone either",
            waits_for="operator",
            remedy=f"if you undid it by hand, skip goes on without it (step {rollback.stuck})" if found else "",
            remedies=remedies(found),
            step=step.node,
            step_number=rollback.stuck,
        )

    def _failed_meanwhile(self) -> Iterator[Reason]:
        """Steps that gave up while the run was paused: what follows from that follows once it goes on."""
        for step in self._found.state.frozen.values():
            if not step.has_failed or self._found.state.pause is None:
                continue
            found = m.about_failed(self._trials, step)
            instead = RemedyText(found).of_step()
            yield Reason(
                kind="dead_letter",
                words=f"{step.node!r} gave up meanwhile: {step.error}; what follows from that follows when the run is resumed",
                waits_for="operator",
                remedy=f"{instead} before the run is resumed, or resume it and have it fail" if instead else "",
                remedies=remedies(found),
                step=step.node,
                step_number=step.number,
            )

    def _held(self) -> Iterator[Reason]:
        state, mode = self._found.state, self._found.maintenance
        if mode:
            yield Reason(
                kind="maintenance",
                words=f"maintenance mode {mode!r} holds up all work",
                remedy="admin.resume_processing() ends it",
            )
        for hold in self._found.holds:
            why = f" ({hold.reason})" if hold.reason else ""
            yield Reason(
                kind="held",
                words=f"{hold.scope} has been paused by {hold.paused_by!r} since {hold.paused_at}{why}",
                waits_for="operator",
                remedy="pauses.resume ends that pause",
                since=hold.paused_at,
                until=hold.until,
            )
        if state.status == "paused" and state.reason not in OF_A_STEP:
            by, since, found = self._paused_by(), self._paused_at(), m.about_run(self._trials)
            told = RemedyText(found).of_run()
            if state.reason == NO_APPROVER:
                asked = [each for step in self._undecidable() for each in m.about_question(self._trials, step)]
                found = [*asked, *found]
                told = RemedyText(found).of_question()
            yield Reason(
                kind="paused",
                words=f"it has been paused by {by!r} since {since} ({state.reason}): {trouble(state)}",
                waits_for="operator",
                remedy=told,
                remedies=remedies(found),
                since=since,
            )

    def _undecidable(self) -> Iterator[StepState]:
        """The questions that nobody can decide."""
        state = self._found.state
        return (state.open[number] for number, each in state.questions.items() if each.trouble and number in state.open)

    def _paused_by(self) -> str:
        """Who paused it: the person who wanted it to wait, or the engine itself, whoever gave the command that this follows from."""
        pause = self._found.state.pause
        return pause.by or SYSTEM.id if pause is not None and self._found.state.reason == REQUESTED else SYSTEM.id

    def _paused_at(self) -> datetime | None:
        """Since when. A run that counted as paused before, because it waited, is paused since then by another thing."""
        pause = self._found.state.pause
        return self._found.header.paused_at if pause is None else pause.since

    @property
    def _is_process(self) -> bool:
        return self._found.graph.kind == "process"

    def _gave_up(self) -> Iterator[Reason]:
        for letter in self._letters:
            if letter.name == NOTICE_HANDLER:
                continue  # Nobody waits for it; `untold` says whom it did not reach.
            what = f"{letter.name!r}" if letter.source == "step" else f"the {letter.source} {letter.name!r}"
            calls = "1 call" if letter.attempts == 1 else f"{letter.attempts} calls"
            is_step = letter.source in {"step", "compensation"}
            told, found = self._about(letter)
            yield Reason(
                kind="dead_letter",
                words=f"{what} gave up at {letter.created_at}, after {calls}: {letter.error}",
                remedy=told.replace("{}", str(letter.id)),
                remedies=remedies(found),
                since=letter.created_at,
                step=letter.name if is_step else "",
                step_number=letter.number if is_step else None,
            )

    def _about(self, letter: DeadLetterRecord) -> tuple[str, list[m.AcceptedOperation]]:
        """What can be done about something that gave up."""
        match letter.source:
            case "step":
                step = self._found.state.dead.get(letter.number)
                found = [] if step is None else [*m.about_failed(self._trials, step), *m.instead(self._trials)]
                lacks = step is not None and self._trials.lacks(step)
                can_fork = not paused_problem(self._found.state)
                return RemedyText(found, is_process=self._is_process, lacks=lacks, can_fork=can_fork).of_step(), found
            case "compensation":
                halted = self._found.state.rollback or self._found.state.dropped
                is_stuck = halted is not None and halted.stuck == letter.number
                found = m.about_undoing(self._trials) if is_stuck else []
                named = {each.operation for each in found}
                by_hand = f"skip goes on without it (step {letter.number})" if "skip" in named else _DISCARD
                how = _UNDO if "retry_compensation" in named else self._undone_elsewhere(letter)
                return f"{how}; if you undid it by hand, {by_hand}", found
            case "effect" if letter.reason == RECALLED:
                return f"its instance took it back while it ran: {_DISCARD}", []
            case _:
                return f"{_REQUEUE}, {_DISCARD}", []

    def _undone_elsewhere(self, letter: DeadLetterRecord) -> str:
        executed = self._found.state.executed.get(letter.number)
        child = "" if executed is None else executed.child
        return (
            f"it is undone where it was done: ask why() of the run {child}" if child else "nobody waits for it any more"
        )

    def _turning_back(self) -> Iterator[Reason]:
        rollback, dropped = self._found.state.rollback, self._found.state.dropped
        if rollback is not None:
            count = 0 if rollback.chain is None else len(rollback.chain)
            left = f", {'1 step is' if count == 1 else f'{count} steps are'} still to be undone" if count else ""
            cause = rollback.error or rollback.reason
            yield Reason(
                kind="compensation",
                words=f"it undoes what it did{left}: {cause}" if cause else f"it undoes what it did{left}",
            )
        elif dropped is not None and dropped.stuck is None:
            yield Reason(kind="compensation", words="it undoes what branches did that were not needed")

    def _delivering(self) -> Iterator[Reason]:
        for message in self._messages:
            if Word(message.language, message.type, message.version) not in self._found.words:
                yield self._unread(
                    f"the message {message.type!r} version {message.version}", f"inbox.bury({message.id})"
                )
                continue
            failed = f", and {message.attempts} attempts have failed: {message.error}" if message.error else ""
            yield Reason(
                kind="message",
                words=f"the message {message.type!r} waits in the inbox to be delivered{failed}",
                remedy="" if not failed else f"inbox.bury({message.id}) gives it up",
            )

    def _unread(self, what: str, bury: str) -> Reason:
        """Something that waits for code that can read it; what is behind it waits too, until it is given up."""
        told = f"{what} cannot be read by the code of this process, and holds up what is behind it"
        after = self._found.settings.unreadable_after
        remedy = f"{bury} gives it up; if no code can read it, a worker does so after {after}"
        return Reason(kind="unreadable", words=told, remedy=remedy)

    def _errands(self) -> Iterator[Reason]:
        calls = {each.number for each in self._calls.values()}
        for effect in self._effects:
            if effect.number in calls:
                continue
            until, words = effect.parked_until, f"the engine itself is at {effect.type!r} since {effect.created_at}"
            if until is not None and until > self._found.now:
                words = f"{words}, and tries again at {until}: {effect.error}"
                yield Reason(kind="retry", words=words, since=effect.created_at, until=until)
            else:
                yield Reason(kind="errand", words=words, since=effect.created_at)

    # -- calls

    def _call(self, step: StepState) -> Iterator[Reason]:
        """What a step that calls a handler waits for; without an effect something in the inbox or among the dead letters tells."""
        effect = self._calls.get(step.number)
        if effect is None:
            return
        name = f"the compensation of {step.node!r}" if step.of is not None else repr(step.node)
        about = {"step": step.node, "step_number": step.number, "handler": effect.handler}
        if effect.owner is not None:
            yield self._in_hand(name, effect, about, step)
        elif effect.parked_until is not None and effect.parked_until > self._found.now:
            yield self._put_off(name, step, effect, about)
        else:
            yield self._unclaimed(name, effect, about)

    def _in_hand(
        self, name: str, effect: StoredEffect, about: dict[str, object], step: StepState | None = None
    ) -> Reason:
        worker = self._worker(effect.owner)
        since = effect.claimed_at or effect.created_at
        if worker is None:
            found = [] if step is None else m.about_call(self._trials, step, is_lost=True)
            now = "; reenqueue gives it away now" if found else ""
            return _reason(
                about,
                kind="lost_worker",
                words=f"{name} is in the hands of worker {effect.owner}, which is not alive, since {since}",
                remedy=f"another worker takes it over when the lease has run out{now}",
                remedies=remedies(found),
                since=since,
                worker=str(effect.owner),
            )
        words, lasts = f"{name} runs on worker {worker.name!r} since {since}", self._found.now - since
        hangs = "if it hangs, end that process, and another worker calls it; give it a timeout, and such a call ends by itself"
        remedy = hangs if lasts > _LONG else ""
        settings = self._found.settings
        has_limit = options_of(effect).timeout is not None or settings.handler_timeout is not None
        if lasts >= settings.hung_after and not has_limit:
            words = f"{words}, which is longer than {settings.hung_after}, so that it may hang"
            return _reason(about, kind="hung", words=words, remedy=remedy, since=since, worker=worker.name)
        return _reason(about, kind="running", words=words, remedy=remedy, since=since, worker=worker.name)

    def _put_off(self, name: str, step: StepState, effect: StoredEffect, about: dict[str, object]) -> Reason:
        row = self._rows.get(step.number)
        until, error = effect.parked_until, "" if row is None else row.error
        if step.attempt > 1:
            kind, words = (
                "retry",
                f"{name} failed and is called again at {until}, for the {step.attempt}. time: {error}",
            )
        else:
            kind, words = "delay", f"{name} is put off until {until}"
        found = m.about_call(self._trials, step, is_lost=False)
        now = "retry calls it now" if found else ""
        return _reason(
            about, kind=kind, words=words, remedy=now, remedies=remedies(found), since=effect.created_at, until=until
        )

    def _unclaimed(self, name: str, effect: StoredEffect, about: dict[str, object]) -> Reason:
        since, handler = effect.created_at, effect.handler
        if not self._found.workers:
            words = f"{name} waits since {since}, and no worker runs, in this process or another"
            return _reason(about, kind="no_worker", words=words, remedy="start_worker() starts one", since=since)
        if not any(handler in each.handlers for each in self._found.workers):
            words = f"{name} waits since {since}, and no live worker has the handler {handler!r}"
            remedy = _bringing(handler) if self._is_process else "start a worker that has it"
            return _reason(about, kind="no_handler", words=words, remedy=remedy, since=since)
        words = f"{name} waits for a free worker since {since}"
        return _reason(about, kind="worker", words=words, since=since)

    def _stopping(self, number: int) -> Iterator[Reason]:
        executed = self._found.state.executed[number]
        effect = self._calls.get(number)
        if executed.child:
            yield self._child(executed.child, executed.node, number, "that was told to stop")
        elif effect is not None:
            about = {"step": executed.node, "step_number": number, "handler": effect.handler}
            name = f"{executed.node!r}, which was told to stop,"
            yield (
                self._in_hand(name, effect, about) if effect.owner is not None else self._unclaimed(name, effect, about)
            )

    def _worker(self, owner: WorkerId | None) -> WorkerRecord | None:
        return next((each for each in self._found.workers if each.id == owner), None)

    # -- waits

    def _wait(self, step: StepState) -> Iterator[Reason]:
        """What the world has to bring. A time that is over, and a child that is gone, wake nobody, so they are no reason."""
        node = self._found.graph.nodes[step.node]
        row = self._rows.get(step.number)
        since = None if row is None else row.opened_at
        timer = self._timers.get(step_timer(step.number))
        until = None if timer is None else timer.due_at
        about: dict[str, object] = {"step": step.node, "step_number": step.number, "since": since, "until": until}
        ending = f" and at most until {until}" if until is not None else ""
        if isinstance(node.op, StateNode | RestOp):
            yield self._transition(about, ending)
            return
        match kind_of(node).wait_kind:
            case "timer":
                if until is not None:
                    found = m.about_wait(self._trials, step)
                    words, now = f"{step.node!r} waits until {until}", "skip goes on now" if found else ""
                    yield _reason(about, kind="timer", words=words, remedy=now, remedies=remedies(found))
            case "human":
                yield self._person(step, about, ending)
            case "child":
                what = "to undo what it did" if step.of is not None else ""
                yield self._child(step.child, step.node, step.number, what, since=since, until=until)
            case "branches":  # What these wait for are reasons of their own.
                awaited = (
                    "the other branches of the document are over" if until is None else "no pause holds it any more"
                )
                words = f"{step.node!r} waits since {since} until {awaited}"
                yield _reason({**about, "until": None}, kind="branches", words=words)
            case "notice":  # The errand that tells them is a reason of its own.
                if until is not None:
                    found = m.about_wait(self._trials, step)
                    words = f"{step.node!r} waits for people to be told since {since}{ending}"
                    now = "skip goes on without that" if found else ""
                    yield _reason(about, kind="notice", words=words, remedy=now, remedies=remedies(found))
            case _ if isinstance(node.op, WaitEventsOp):
                yield self._event(step, about, ending)
            case _:
                yield self._signal(node, step, about, ending)

    def _transition(self, about: dict[str, object], ending: str) -> Reason:
        """A document stays in its state until a transition is asked for that leads on from there."""
        document = self._found.state.document
        assert document is not None
        found = m.transitions(self._trials)
        names = [each.name for each in found]
        until = (
            f"{' or '.join(map(repr, names))} is asked for" if names else "its workflow has a transition that leads on"
        )
        words = f"the document is {document.status!r} since {about['since']}, and stays so until {until}{ending}"
        calls = [f"documents.transition({document.type!r}, {document.id!r}, {each!r})" for each in names]
        told = f"{' or '.join(calls)} brings it on" if calls else ""
        about = {**about, "waits_for": ", ".join(names), "remedies": remedies(found)}
        return _reason(about, kind="transition", words=words, remedy=told)

    def _signal(self, node: Node, step: StepState, about: dict[str, object], ending: str) -> Reason:
        name = node.op.signal if isinstance(node.op, WaitEventOp) else node.op.detail
        others = unawaited(self._found.graph, self._found.state.signals)
        words = f"{node.id!r} waits for the signal {name!r} since {about['since']}{ending}{others}"
        found = m.about_wait(self._trials, step)
        told = f"signal({name!r}) brings it on" if found else ""
        return _reason(about, kind="signal", words=words, remedy=told, remedies=remedies(found), waits_for=name)

    def _event(self, step: StepState, about: dict[str, object], ending: str) -> Reason:
        """The events that have not come yet, as they are published."""
        rows = [each for each in self._reader.rows(SUBSCRIPTIONS, self._found.header.id) if each.number == step.number]
        op, data = self._found.graph.nodes[step.node].op, self._found.state.tokens[step.token].data
        assert isinstance(op, WaitEventsOp)
        keys = {row.place: self._key(step, op.events[row.place], row.correlation or "") for row in rows}
        named = [repr(row.signal) + (f" for {key!r}" if (key := keys[row.place]) else "") for row in rows]
        what = f"the event {named[0]}" if len(named) == 1 else f"the events {', '.join(named)}"
        calls = [
            f"publish({', '.join(repr(each) for each in (row.signal, row.correlation) if each)})"
            for row in rows
            if keys[row.place] == (row.correlation or "")
        ]
        hidden = [row for row in rows if self._hides(step, f"{MATCH}{op.events[row.place].title}")]
        open_ = [row for row in rows if row not in hidden]
        others = "".join(f"; {each}" for each in unmatched(self._reader, op, open_, data=data, now=self._found.now))
        others += self._uncounted(step, rows)
        return _reason(
            about,
            kind="event",
            words=f"{step.node!r} waits for {what} since {about['since']}{ending}{others}",
            remedy=f"{' or '.join(calls)} brings it on" if calls else "",
            remedies=remedies(m.about_wait(self._trials, step)),
            waits_for=", ".join(dict.fromkeys(each.signal for each in rows)),
        )

    def _key(self, step: StepState, awaited: Awaited, key: str) -> str:
        """The key of an event for whoever asks: what it has of fields that are for others is masked."""
        name = f"{KEY}{awaited.title}"
        if not key or not self._hides(step, name):
            return key
        state, routes = self._found.state, self._found.routes
        assert routes is not None
        guarded = routes.guarded(step.node, name)
        assert guarded is not None
        try:
            return str(guarded.masked.evaluate(text_names(state, state.tokens[step.token].data)))
        except ExpressionError:
            return MASKED

    def _hides(self, step: StepState, name: str) -> bool:
        """Whether an expression of a step reads what whoever asks may not see."""
        routes = self._found.routes
        guarded = None if routes is None else routes.guarded(step.node, name)
        return guarded is not None and not is_for(guarded.audience, self._found.reader)

    def _uncounted(self, step: StepState, waits: Sequence[StoredSubscription]) -> str:
        """How many of the events that are kept do not count because of who published them, in words; empty if none."""
        node, told = self._found.graph.nodes[step.node], ""
        who, count = dict[str, None](), 0
        for wait in waits if node.capability else ():
            kept = self._reader.kept_for(
                wait.signal, wait.correlation or "", now=self._found.now, after=None, limit=_MOST_UNMATCHED
            )
            found = [
                event for event in map(_decode, (each.data for each in kept)) if not self._trials.may_bring(step, event)
            ]
            count, who = count + len(found), who | dict.fromkeys(event.actor.id for event in found)
        if count:
            what = "1 event that is kept does" if count == 1 else f"{count} events that are kept do"
            whose = "its publisher lacks" if count == 1 else "their publishers lack"
            told = f"; {what} not count, because {whose} {needed_words(node.capability)}: {', '.join(map(repr, who))}"
        if step.refused:
            what = "1 event was" if len(step.refused) == 1 else f"{len(step.refused)} events were"
            told += f"; {what} declined, because no way on is open to the publisher"
        if len(step.refused) >= MOST_REFUSED:
            told += "; it looks for no others, and goes on only with one that is published from now on"
        return told

    def _person(self, step: StepState, about: dict[str, object], ending: str) -> Reason:
        task, instance = self._tasks.get(step.number), self._found.header.id
        asked = [each for each in self._reader.rows(TASK_PEOPLE, instance) if each.number == step.number]
        waited = [(each.kind, each.name) for each in asked if each.is_open]
        if not asked and task is not None and task.role:
            waited = [("role", task.role)]
        who = ", ".join(f"somebody with the role {name!r}" if kind == "role" else repr(name) for kind, name in waited)
        subject = f" ({task.subject})" if task is not None and task.subject else ""
        decided = ", ".join(
            f"{each.actor!r} ({each.outcome})"
            for each in self._reader.rows(TASK_DECISIONS, instance)
            if each.number == step.number and not each.is_withdrawn
        )
        so_far = f"; so far have decided: {decided}" if decided else ""
        holder = self._trials.claimant(step)
        if holder:
            waited, who = [("user", holder)], f"{holder!r}, who has claimed it,"
        words = (
            f"{step.node!r} waits for a decision by {who or 'a person'} since {about['since']}{ending}{subject}{so_far}"
        )
        names = ", ".join(dict.fromkeys(name for _, name in waited))
        question, found = self._found.state.questions.get(step.number), m.about_question(self._trials, step)
        is_advanced = self._is_process and bool(found) and self._trials.may_advance(found[0].name)
        calls = "processes.advance or tasks.decide" if is_advanced else "tasks.decide"
        release: list[Remedy] = []
        if holder:
            release = [Remedy(call="tasks.release", step_number=step.number, capability=REASSIGN)]
        if question is not None and question.trouble:
            words = f"{words}; {question.trouble}"
            told = RemedyText(found).of_question()
        else:
            told = f"{calls} answers it" if found else ""
        if holder:
            told = f"{told}; tasks.release gives it to the others who are asked" if told else ""
        if self._found.silence:
            words = f"{words}; {self._found.silence}"
        return _reason(
            about, kind="person", words=words, remedy=told, remedies=remedies(found) + release, waits_for=names
        )

    def _child(
        self,
        child: str,
        node: str,
        number: int,
        what: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Reason:
        found = self._reader.headers([InstanceId(UUID(child))])
        state = f"which is {found[0].status}" if found else "which has not begun"
        words = " ".join(filter(None, [f"{node!r} waits for the workflow {child}", what, f"({state})"]))
        return Reason(
            kind="child",
            words=words,
            remedy="ask why() of that run",
            since=since,
            until=until,
            step=node,
            step_number=number,
            waits_for=child,
        )


def _bringing(handler: str) -> str:
    """How a worker comes to have what a step of a process calls: a handler, or an operation of an invoker."""
    invoker, colon, operation = handler.partition(":")
    if not colon:
        return f"start a worker whose engine is given it by handle({handler!r}, …)"
    return f"start a worker whose engine is given an invoker {invoker!r} that has the operation {operation!r}"


def _reason(about: dict[str, object], **said: object) -> Reason:
    return msgspec.convert({**about, **said}, settled(Reason))
