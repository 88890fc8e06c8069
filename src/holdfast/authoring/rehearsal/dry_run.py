"""Which way a run would take: its workflow is played to the end, as if everybody asked agreed and everything awaited came."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Final, Literal

import msgspec

from holdfast.authoring.rehearsal.script import Script
from holdfast.authoring.rehearsal.stage import EndlessError, Passage, Rehearsal
from holdfast.authoring.words import Words
from holdfast.kernel.actor import Actor
from holdfast.kernel.decision import Rejection
from holdfast.machine.graphs.graph import Graph, Human, Kind
from holdfast.machine.runs import commands as c
from holdfast.machine.runs.refusals import Refusal
from holdfast.machine.runs.state import Step

Data = dict[str, object]
Ending = Literal["rests", "ended", "paused", "refused", "endless", "waits"]
End = tuple[Ending, str]
"""How it ends, and why."""

_MOST: Final = 1000
"""Assumptions in one dry run."""
_OFTEN: Final = 100
"""How often one question is answered: what comes to it again goes round in circles."""


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
    trail: list[Passage]
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


def dry_run(graph: Graph, start: c.StartWorkflow, actor: Actor, script: Script, *, words: Words) -> DryRun:
    """Play a run as far as it goes; `words` are those of its front end."""
    stage = Rehearsal(graph, answers=script.answers, failing=script.failing)
    ends, reason = Walk(stage, script).to_end(start, actor)
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


class Walk:
    """A run on its supposed way."""

    def __init__(self, stage: Rehearsal, script: Script) -> None:
        self._stage = stage
        self._script = script
        self._times: Counter[str] = Counter()
        """How often each question was answered."""

    def to_end(self, first: c.Command, actor: Actor) -> End:
        """Go as far as it goes."""
        try:
            refusal = self._stage.say(first, actor)
            return refused(refusal) if refusal is not None else self._go()
        except EndlessError:
            return "endless", "something goes round in circles"

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
        for _ in range(_MOST):
            found = self.over() or self._on()
            if found is not None:
                return found
        return "endless", "it takes more than a thousand answers"

    def _on(self) -> End | None:
        """One assumption more; how it ends, if there is none to make."""
        stage, silent = self._stage, self._script.unanswered
        question = next((each for each in stage.questions if stage.name(each.node) not in silent), None)
        if question is not None:
            return self._decide(question)
        waiting = [each for each in stage.trail if not each.outcome]
        moves = stage.moves
        event = next((each.event for each in stage.awaited if each.event not in silent), None)
        signal = next((each for each in stage.signals if each not in silent), None)
        awaited = event or signal
        if awaited is not None:
            payload = self._script.events.get(awaited)
            if event is not None:
                stage.publish(event, payload)
            else:
                stage.say(c.SendSignal(name=awaited, payload=payload), PUBLISHER)
            if stage.moves == moves:
                return "waits", f"{awaited!r} came and is not what is waited for; say by `events` what it brings"
            self._assume(waiting, f"waits for {awaited}")
            return None
        if stage.rests or stage.next_due() is None:
            return self.onward()
        began = stage.now
        stage.fire_next()
        self._assume(waiting, f"waits {_length(stage.now - began)}")
        return None

    def _decide(self, step: Step) -> End | None:
        stage, name = self._stage, self._stage.name(step.node)
        self._times[name] += 1
        if self._times[name] > _OFTEN:
            told = f"{name!r} is come to {_OFTEN} times"
            return "endless", f"{told}; say by `decisions` how people decide each time"
        asked, passage = stage.asked(step), stage.passage(step)
        passage.note = f"asks {', '.join(asked) or 'anybody'}"
        said = self._script.decisions.get(name)
        in_turn = [said] * _OFTEN if isinstance(said, str) else said or []
        is_said = self._times[name] <= len(in_turn)
        passage.is_assumed = not is_said
        op = stage.machine.routes.node(step.node).op
        assert isinstance(op, Human)
        outcome = in_turn[self._times[name] - 1] if is_said else op.approval
        refusal = stage.answer(step, outcome, data=self._script.forms.get(name))
        if refusal is None:
            return None
        ends, reason = refused(refusal)
        return ends, f"{reason}; say by `forms` what is filled in" if refusal.code == Refusal.INVALID_FORM else reason

    def _assume(self, waiting: list[Passage], note: str) -> None:
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


def _line(passage: Passage) -> str:
    left = f" → {passage.outcome}" if passage.outcome else ""
    note = f"  ({passage.note})" if passage.note else ""
    return f"{'undo ' if passage.is_undoing else ''}{passage.node}{left}{note}"
