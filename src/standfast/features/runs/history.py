"""The history of a run in the words of its front end: what each event means for its step, and which step that is.

What an event means may depend on those before it. A page from the middle is told like a page from the whole: the names of its steps are
looked up, and of the events before it only those are read that the page cannot be understood without.

Runs as they were: the state after an event of the history, folded anew from the stored snapshot or from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast

import msgspec

from standfast.calls.context import CallContext
from standfast.errors import NotFoundError, PayloadError, ReplayError
from standfast.features.deciders import views
from standfast.features.deciders.masking import Mask
from standfast.features.runs.reads import begun, workflow_row
from standfast.features.runs.views import HistoryEntry
from standfast.graph.model import Graph, HumanOp, TaskOp
from standfast.graph.status_words.by_kind import words_of
from standfast.graph.status_words.protocol import StepFacts
from standfast.kernel.actor import Actor
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.documents.visibility import said
from standfast.machine.model.state import RunState
from standfast.machine.nodes import kind_of
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address
from standfast.store.records.queries import StepName

_STRETCH = 100
"""Events before a page that are read at once."""

_STARTS = frozenset({"step_started", "compensation_started"})
_TURNS = frozenset({"rollback_started", "cancellation_started", "move_back_started"})
"""Events by which the run turns back; it does not wait for an operator any more."""
_PAUSES = frozenset({"workflow_paused", "workflow_resumed", *_TURNS})
"""Events after which it is known whether the run waits for an operator."""
_ASK_FOR_PAUSE = frozenset({"step_withdrawn", "step_skipped_missing_handler", *_TURNS})
"""Events whose meaning depends on that."""
_BY_HAND = frozenset({"skip", "complete"})
"""Repairs after which no call of the step comes back."""


_ENDS = frozenset(
    {
        "step_completed",
        "step_failed",
        "step_paused",
        "compensation_success",
        "compensation_max_retries_exceeded",
    }
)
"""Events that a call leads to when it is the last one; a `reason` says that none did."""


class _Fact(NamedTuple):
    """An event and all that it says."""

    event: StoredEvent
    data: dict[str, object]

    @property
    def step(self) -> int | None:
        """Number of the step that it is about, as the event itself has it."""
        own = self.data.get("step")
        return own if isinstance(own, int) else None

    @property
    def is_start(self) -> bool:
        """Whether its step begins with it."""
        return self.event.type in _STARTS or bool(self.data.get("node"))


class HistoryRenderer:
    """Tells events one after the other to somebody: of documents only what is for their eyes."""

    def __init__(self, program: Program, graph: Graph | None, actor: Actor, mask: Mask | None = None) -> None:
        self._program = program
        self._graph = graph
        self._actor = actor
        self._mask = mask
        self._document = None if graph is None else graph.document
        self._words = words_of("" if graph is None else graph.kind)
        self._names: dict[int, str] = {}
        self._undone: dict[int, int] = {}
        """The steps that compensations undo."""
        self._asked: dict[int, int] = {}
        """Number of the call that each step has asked for last."""
        self._calls: dict[int, int] = {}
        """How many have come back."""
        self._dead: set[int] = set()
        """Steps that wait for an operator."""
        self._is_paused = False

    def page(self, reader: TenantReader, instance: InstanceId, *, after: int, limit: int | None) -> list[HistoryEntry]:
        """A page of the history of a run, told as if all before it had been told too."""
        facts = [self._fact(event) for event in reader.events(instance, after=after, limit=limit)]
        if after > 0 and facts:
            self._look_up(reader.step_names(instance, sorted({each.step for each in facts if each.step is not None})))
            for each in self._before(reader, instance, facts, after):
                self._tell(each)
        return [self._tell(each) for each in facts]

    def _look_up(self, names: Mapping[int, StepName]) -> None:
        for number, (node, compensates) in names.items():
            self._names[number] = node
            if compensates is not None:
                self._undone[number] = compensates
                self._names[compensates] = node

    def _before(self, reader: TenantReader, instance: InstanceId, page: Sequence[_Fact], after: int) -> list[_Fact]:
        """What happened to the steps of a page before it, and if need be, whether the run waited for an operator."""
        steps, must_know_pause = self._unexplained(page)
        before: list[_Fact] = []
        while after > 0 and (steps or must_know_pause):
            start = max(0, after - _STRETCH)
            stretch = [self._fact(event) for event in reader.events(instance, after=start, limit=after - start)]
            steps -= {each.step for each in stretch if each.is_start}
            must_know_pause = must_know_pause and not any(each.event.type in _PAUSES for each in stretch)
            before[:0] = stretch
            after = start
        return before

    def _unexplained(self, page: Iterable[_Fact]) -> tuple[set[int | None], bool]:
        """Steps of a page whose beginnings lie before it and matter, and whether it matters if the run waited for an operator."""
        started: set[int | None] = set()
        steps: set[int | None] = set()
        is_known = must_know_pause = False
        for each in page:
            must_know_pause = must_know_pause or (each.event.type in _ASK_FOR_PAUSE and not is_known)
            is_known = is_known or each.event.type in _PAUSES
            if each.is_start:
                started.add(each.step)
            elif each.step is not None and each.step not in started and self._has_past(each, each.step):
                steps.add(each.step)
        return steps, must_know_pause

    def _has_past(self, fact: _Fact, step: int) -> bool:
        """Whether it matters what happened to a step: how often its handler was called, or that it gave up."""
        node = None if self._graph is None else self._graph.nodes.get(self._names.get(step, ""))
        is_called = node is None or isinstance(node.op, TaskOp) or step in self._undone
        return is_called or fact.event.type == "step_failed"

    def _fact(self, event: StoredEvent) -> _Fact:
        said, _ = views.told(event, self._program)
        plain = msgspec.to_builtins(said)
        data = plain if isinstance(plain, dict) else {"data": plain}
        return _Fact(event, {name: value for name, value in data.items() if value is not None})

    def _tell(self, fact: _Fact) -> HistoryEntry:
        """An event. What happens to a compensation happens to the step that it undoes."""
        event, data = fact
        own = fact.step
        number = self._learn(own, data) if own is not None else None
        calls = self._count(event.type, own, data) if own is not None else 0
        status = self._status_after(event.type, number, data, is_undoing=own in self._undone, calls=calls)
        name = self._names.get(number or 0, "")
        told = said(self._document, event.type, data, self._actor)
        return HistoryEntry(
            sequence=event.sequence,
            event_type=self._words.event_name(event.type, data),
            instance=event.instance,
            step_number=number,
            step_name=name,
            status=status,
            retry_count=calls,
            error=str(data.get("error", "")),
            timestamp=event.at,
            actor=event.actor,
            on_behalf_of=event.on_behalf_of or str(data.get("on_behalf_of") or ""),
            trace=event.trace,
            comment=event.comment,
            data=told if self._mask is None else self._mask.event(name, told),
        )

    def _learn(self, own: int, data: Mapping[str, object]) -> int:
        """The number of the step that an event is about."""
        if data.get("node"):
            self._names[own] = str(data["node"])
        if "of" in data:
            self._undone[own] = cast("int", data["of"])
        return self._undone.get(own, own)

    def _status_after(
        self, type_: str, number: int | None, data: Mapping[str, object], *, is_undoing: bool, calls: int
    ) -> str:
        node = None if self._graph is None else self._graph.nodes.get(self._names.get(number or 0, ""))
        known = StepFacts(
            outcome=str(data.get("outcome", "")),
            reason=str(data.get("reason", "")),
            is_human=node is not None and isinstance(node.op, HumanOp),
            is_waiting=node is not None and bool(kind_of(node).wait_kind),
            is_paused=self._is_paused,
            is_dead=number in self._dead,
            is_undoing=is_undoing,
            is_delayed="delay_ms" in data,
            calls=calls,
        )
        match type_:
            case "workflow_paused":
                self._is_paused = True
            case "workflow_resumed":
                self._is_paused = False
            case _ if type_ in _TURNS:
                self._is_paused = False
            case "step_paused" if number is not None:
                self._dead.add(number)
            case "step_requeued" | "step_repaired" | "step_failed":
                self._dead.discard(number or 0)
            case _:
                pass
        return self._words.event_status(type_, known)

    def _count(self, type_: str, own: int, data: Mapping[str, object]) -> int:
        """The calls of a handler up to an event: those that have come back, and the first one when it is asked for without delay."""
        match type_:
            case "step_started" | "compensation_started":
                self._asked[own] = int("effect" in data)
                return 0 if "delay_ms" in data else self._asked[own]
            case "step_retry" | "compensation_retry":
                attempt = cast("int", data["attempt"])
                self._asked[own] = attempt + 1
                if data.get("was_called", True):
                    self._calls[own] = attempt
            case "step_repaired" if data["repair"] in _BY_HAND:
                self._asked[own] = self._calls.get(own, 0)
            case "step_stopped":
                self._calls[own] = cast("int", data.get("attempt", 0)) or self._calls.get(own, 0)
            case _ if type_ in _ENDS and data.get("was_called", True) and not data.get("reason"):
                self._calls[own] = self._asked.get(own, 0)
            case _:
                pass
        return self._calls.get(own, 0)


class PastState(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was after an event."""

    id: InstanceId
    at: int
    """Number of the event."""
    event: str
    """Name of the event."""
    happened_at: datetime
    status: str
    reason: str
    error: str
    """Why it waited for an operator, or why it had ended, if it had not ended well."""
    open: list[str]
    """Names of the steps that were under way."""
    ended: list[str]
    """Names of the steps that had ended, in that order; where nothing can be undone, only those that were still asked for."""
    data: dict[str, dict[str, object]]
    """The data of each token, by its name; of a document nothing: its versions tell that."""
    result: object
    """What it had come to; null if it had not ended well."""


def state_at(desk: CallContext, reader: TenantReader, run: InstanceId, at: int) -> PastState:
    """A run as it was after the event with this sequence."""
    header = workflow_row(reader, run)
    if not 1 <= at <= header.version:
        raise NotFoundError("event of a history", at, hint=f"the history of {run} has the events 1 to {header.version}")
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    (event,) = reader.events(header.id, after=at - 1, limit=1)
    state = cast("RunState", _folded(reader, program, desk.address(instance=run), at))
    status = program.status(state)
    has_begun = bool(begun(reader, [header])) if at == header.version else header.begun and _had_begun(state)
    # What a document held is told by its versions, each field to those whose eyes it is for.
    tokens = {**state.tokens, **state.parked} if state.document is None else {}
    return PastState(
        id=run,
        at=at,
        event=event.type,
        happened_at=event.at,
        status=words_of(header.kind).instance_status(status.word, status.reason, has_begun=has_begun),
        reason=status.reason,
        error=state.error,
        open=[each.node for each in state.open.values()],
        ended=[each.node for each in state.executed.values()],
        data={name: token.data for name, token in tokens.items()},
        result=state.result if state.document is None else None,
    )


def _had_begun(state: RunState) -> bool:
    """Whether anybody had worked on it, or it waited: a call that nobody had taken yet is no work."""
    is_waiting = any(each.effect is None for each in state.open.values())
    return bool(is_waiting or state.executed or state.dead or state.frozen or state.is_terminal)


def _folded(reader: TenantReader, program: Program, address: Address, at: int) -> object:
    """The state after an event. The newest snapshot is the only one that is kept: what is older is folded from the beginning."""
    loaded = reader.load(address)
    assert loaded is not None, "its row was read"
    run, kept = loaded.header.id, loaded.snapshot
    if kept is not None and kept.version <= at and program.takes_snapshot(kept.state_version, kept.fingerprint):
        try:
            later = reader.events(run, after=kept.version, limit=at - kept.version) if at > kept.version else []
            return program.replay(program.restore(kept.data), later)
        except (PayloadError, ReplayError):
            pass  # It cannot be read, or the events do not fit on it: the events alone tell.
    return program.replay(program.initial(), reader.events(run, limit=at))
