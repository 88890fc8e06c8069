"""Which way a run would take: its workflow is played to the end, as if everybody asked agreed and everything awaited came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Literal, TypedDict

import msgspec

from standfast.features.simulation.assumptions import Assumptions
from standfast.features.simulation.simulator import Simulator
from standfast.features.simulation.trace import AwaitedEvent, EndlessError, TraceEntry
from standfast.graph.model import Graph, HumanOp, Kind
from standfast.graph.status_words.protocol import StatusWords
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Rejection
from standfast.kernel.facts import Facts
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import StepState

Data = dict[str, object]
Ending = Literal["rests", "ended", "paused", "refused", "endless", "waits"]
End = tuple[Ending, str]
"""How it ends, and why."""

_MOST: Final = 1000
"""Assumptions in one dry run."""
_OFTEN: Final = 100
"""How often one question is answered that nobody said more of: what comes to it again goes round in circles."""
_IDLE: Final = 5_000
"""How often in a row time may go by and nothing comes of it: reminders of half a year, one an hour."""


class SimulationTerms(TypedDict, total=False):
    """What a dry run is bound by, as the stage has it."""

    limit: int
    is_late: Callable[[], bool]


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The way that a run, or a document, would take."""

    kind: Kind
    """Of the workflow; that of documents is an envelope."""
    ends: Ending
    """Whether it comes to its end, to rest, waits for an operator, is refused, goes round in circles, or waits for what is not known."""
    status: str
    """What the run, or the document, would be then; empty if it could not be begun."""
    outcome: str = ""
    """What the run came to, in a word of its definition."""
    reason: str
    """Why it goes no further, where that is not by its own rest or end; or why it ended badly."""
    trail: list[TraceEntry]
    """The nodes on the way, with what each is left by; what is assumed is marked."""
    data: Data
    """What the run came to, as far as it came, or what the document would hold."""

    def to_text(self) -> str:
        """The same for people: a line for each node."""
        lines = [f"{'?' if each.is_assumed else ' '} {_line(each)}" for each in self.trail]
        what = "document" if self.kind == "envelope" else "run"
        came = f" ({self.outcome})" if self.outcome else ""
        reason = f"; {self.reason}" if self.reason else ""
        return "\n".join([*lines, f"{self.ends}: the {what} is {self.status or 'not there'}{came}{reason}"]) + "\n"


def dry_run(
    graph: Graph,
    start: c.StartWorkflow,
    actor: Actor,
    script: Assumptions,
    *,
    words: StatusWords,
    terms: SimulationTerms | None = None,
    facts: Facts | None = None,
) -> DryRun:
    """Play a run as far as it goes; `words` are those of its front end, `facts` what decisions can read from outside of it."""
    stage = Simulator(graph, answers=script.answers, failing=script.failing, **(terms or SimulationTerms()))
    stage.facts = facts or stage.facts
    ends, reason = DryRunPath(stage, script).to_end(start, actor)
    state, stands = stage.state, stage.machine.status(stage.state)
    root = next(iter(state.tokens.values()), None)
    data = state.result if isinstance(state.result, dict) else {} if root is None else root.data
    return DryRun(
        kind=graph.kind,
        ends=ends,
        status="" if state.status == "new" else words.instance_status(stands.word, stands.reason, has_begun=True),
        outcome=state.outcome,
        reason=reason,
        trail=stage.trail,
        data=data,
    )


class DryRunPath:
    """A run on its supposed way."""

    def __init__(self, stage: Simulator, script: Assumptions) -> None:
        self._stage = stage
        self._script = script
        self._times: Counter[str] = Counter()
        """How often each question was answered, in all branches."""
        self._rounds: Counter[tuple[str, str]] = Counter()
        """How often each question was answered in one branch."""
        self._idle = 0
        """How often in a row time went by and nothing came of it."""
        self._in_vain: set[AwaitedEvent] = set()
        """Events that came and were not what was waited for."""

    def to_end(self, first: c.Command, actor: Actor) -> End:
        """Go as far as it goes."""
        try:
            refusal = self._stage.say(first, actor)
            return refused(refusal) if refusal is not None else self._go()
        except EndlessError as error:
            return "endless", str(error)

    def over(self) -> End | None:
        """How it stands, if it goes no further by itself."""
        state = self._stage.state
        if state.is_terminal:
            return "ended", state.error or (state.reason if state.status != "completed" else "")
        return ("paused", state.error or state.reason) if state.status == "paused" else None

    def onward(self) -> End | None:
        """What else can be asked for, where nothing is open."""
        return "waits", "nothing that is known brings it on"

    # -- how

    def _go(self) -> End:
        made = 0
        while made < _MOST:
            found = self.over() or self._on()
            if found is not None:
                return found
            made += not self._idle
        return self.over() or ("endless", "it takes more than a thousand answers")

    def _on(self) -> End | None:
        """One assumption more; how it ends, if there is none to make."""
        stage, silent = self._stage, self._script.unanswered
        waiting = [each for each in stage.trail if not each.outcome]
        due = stage.next_due()
        if due is not None and due <= stage.now:  # What happens at once is there before anybody answers.
            return self._let_time_pass(waiting)
        question = next((each for each in stage.questions if stage.name(each.node) not in silent), None)
        if question is not None:
            return self._decide(question)
        for awaited in stage.awaited:
            if awaited.event not in silent and awaited not in self._in_vain:
                self._bring(awaited, waiting)
                return None
        signal = next((each for each in stage.signals if each not in silent), None)
        if signal is not None:
            refusal = stage.say(c.SendSignal(name=signal, payload=self._script.events.get(signal)), PUBLISHER)
            self._assume(waiting, f"waits for {signal}")
            return None if refusal is None else refused(refusal)
        if stage.rests or due is None:
            return self._left_in_vain() or self.onward()
        return self._let_time_pass(waiting)

    def _let_time_pass(self, waiting: list[TraceEntry]) -> End | None:
        """Nothing else happens: the next thing that comes by itself does."""
        stage = self._stage
        began, passed = stage.now, len(stage.trail)
        stage.fire_next()
        self._assume(waiting, f"waits {_length(stage.now - began)}")
        has_moved = len(stage.trail) > passed or any(each.outcome for each in waiting)
        self._idle = 0 if has_moved else self._idle + 1
        return ("waits", "nothing happens but that time goes by") if self._idle > _IDLE else None

    def _bring(self, awaited: AwaitedEvent, waiting: list[TraceEntry]) -> None:
        """An event comes; one that is not what is waited for changes nothing, as in a run."""
        moves = self._stage.moves
        self._stage.publish(awaited.event, self._script.events.get(awaited.event), key=awaited.key)
        if self._stage.moves == moves:
            self._in_vain.add(awaited)
        else:
            self._assume(waiting, f"waits for {awaited.event}")

    def _left_in_vain(self) -> End | None:
        """That something came which was not what is waited for, where nothing else is."""
        vain = next((each.event for each in self._stage.awaited if each in self._in_vain), None)
        told = f"{vain!r} came and is not what is waited for; say by `events` what it brings"
        return None if vain is None else ("waits", told)

    def _decide(self, step: StepState) -> End | None:
        stage, name = self._stage, self._stage.name(step.node)
        self._times[name] += 1
        self._rounds[name, step.token] += 1
        said = self._script.decisions.get(name)
        in_turn = [said] * self._times[name] if isinstance(said, str) else said or []
        is_said = self._times[name] <= len(in_turn)
        if self._rounds[name, step.token] > _OFTEN and (isinstance(said, str) or not is_said):
            told = f"{name!r} is come to {_OFTEN} times"
            return "endless", f"{told}; say by `decisions` how people decide each time"
        asked, passage = stage.asked(step), stage.passage(step)
        passage.note = f"asks {', '.join(asked) or 'anybody'}"
        passage.is_assumed = not is_said
        op = stage.machine.routes.node(step.node).op
        assert isinstance(op, HumanOp)
        outcome = in_turn[self._times[name] - 1] if is_said else op.approval
        self._idle = 0
        refusal = stage.answer(step, outcome, data=self._script.forms.get(name))
        if refusal is None:
            return None
        ends, reason = refused(refusal)
        return ends, f"{reason}; say by `forms` what is filled in" if refusal.code == Refusal.INVALID_FORM else reason

    def _assume(self, waiting: list[TraceEntry], note: str) -> None:
        """Mark those that have waited and were left."""
        for each in waiting:
            if each.outcome:
                each.is_assumed, each.note = True, each.note or note


PUBLISHER: Final = Actor(id="somebody", capabilities=frozenset({"*"}))
"""Who sends what is waited for."""


def refused(refusal: Rejection) -> End:
    """That something cannot be done."""
    return "refused", f"{refusal.message} [{refusal.code}]"


def _length(duration: timedelta) -> str:
    """How long something took, as people say it."""
    seconds = duration.total_seconds()
    return f"{duration.days} d" if duration.days and not duration.seconds else f"{seconds:g} s"


def _line(passage: TraceEntry) -> str:
    left = f" → {passage.outcome}" if passage.outcome else ""
    note = f"  ({passage.note})" if passage.note else ""
    return f"{'undo ' if passage.is_undoing else ''}{passage.node}{left}{note}"
