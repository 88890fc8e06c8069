"""Which way a document would take: its workflow is played to the end, as if everybody asked agreed and everything awaited came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from holdfast.authoring.document.ids import local_name
from holdfast.authoring.document.rehearsal import EndlessError, Passage, Rehearsal
from holdfast.kernel.actor import Actor
from holdfast.machine.graphs.graph import Graph
from holdfast.machine.runs.document_commands import CreateDocument, RequestTransition
from holdfast.machine.runs.state import Step

Data = dict[str, object]
Ending = Literal["rests", "ended", "paused", "refused", "endless", "waits"]

_MOST: Final = 1000
"""Assumptions in one dry run."""
_AGREED: Final = "approved"


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The way that a document would take."""

    ends: Ending
    """Whether it comes to rest, to its end, waits for an operator, is refused, goes round in circles, or waits for what is not known."""
    status: str
    """What the document would be then; empty if it could not be created."""
    reason: str
    """Why it goes no further, where that is not by its own rest or end."""
    trail: list[Passage]
    """The nodes on the way, with what each is left by; what is assumed is marked."""
    data: Data
    """What the document would hold."""

    def to_text(self) -> str:
        """The same for people: a line for each node."""
        lines = [f"{'?' if each.is_assumed else ' '} {_line(each)}" for each in self.trail]
        end = f"{self.ends}: the document is {self.status or 'not there'}{f'; {self.reason}' if self.reason else ''}"
        return "\n".join([*lines, end]) + "\n"


def dry_run(
    graph: Graph,
    given: CreateDocument,
    actor: Actor,
    *,
    decisions: Mapping[str, str] | None = None,
    answers: Mapping[str, object] | None = None,
) -> DryRun:
    """Play a document as far as it goes. `decisions` say by node how people decide, where that is not by agreeing; `answers` what handlers answer."""
    stage = Rehearsal(graph, answers=answers)
    walk = _Walk(stage, actor, dict(decisions or {}), given.org)
    try:
        ends, reason = walk.run(given)
    except EndlessError:
        ends, reason = "endless", "something goes round in circles"
    document = stage.document
    return DryRun(
        ends=ends,
        status="" if document is None else document.status,
        reason=reason,
        trail=stage.trail,
        data={} if document is None else document.data,
    )


class _Walk:
    """One document on its supposed way."""

    def __init__(self, stage: Rehearsal, actor: Actor, decisions: dict[str, str], org: Data | None) -> None:
        self._stage = stage
        self._actor = actor
        self._decisions = decisions
        self._org = org
        self._seen: set[str] = set()

    def run(self, given: CreateDocument) -> tuple[Ending, str]:
        """Go as far as it goes; how it ends, and why."""
        refusal = self._stage.begin(given, self._actor)
        if refusal is not None:
            return "refused", f"{refusal.message} [{refusal.code}]"
        for _ in range(_MOST):
            found = self._over() or self._on()
            if found is not None:
                return found
        return "endless", "it takes more than a thousand answers"

    def _over(self) -> tuple[Ending, str] | None:
        state, document = self._stage.state, self._stage.document
        assert document is not None
        if state.is_terminal:
            return "ended", ""
        if state.status == "paused":
            return "paused", state.error or state.reason
        return ("rests", "") if document.is_resting else None

    def _on(self) -> tuple[Ending, str] | None:
        """One assumption more; how it ends, if there is none to make."""
        stage = self._stage
        if stage.questions:
            return self._decide(stage.questions[0])
        waiting = [each for each in stage.trail if not each.outcome]
        if stage.awaited:
            stage.publish(stage.awaited[0].event)
            _assume(waiting)
            return None
        if stage.rests:
            return self._ask()
        if stage.next_due() is None:
            return "waits", "nothing that is known brings it on"
        stage.fire_next()
        _assume(waiting)
        return None

    def _decide(self, step: Step) -> tuple[Ending, str] | None:
        asked, name = self._stage.asked(step), local_name(step.node)
        passage = next(each for each in reversed(self._stage.trail) if each.node == name)
        passage.note = f"asks {', '.join(asked) or 'anybody'}"
        passage.is_assumed = name not in self._decisions
        refusal = self._stage.answer(step, self._decisions.get(name, _AGREED))
        return None if refusal is None else ("refused", f"{refusal.message} [{refusal.code}]")

    def _ask(self) -> tuple[Ending, str] | None:
        """Ask for the way on from a state; a document that comes to a state again goes round, and one that nothing leads on from rests."""
        document = self._stage.document
        assert document is not None
        index = self._stage.machine.routes.documents
        assert index is not None
        onward = [each for each in index.spec.transitions if document.status in each.sources and not each.kind]
        if not onward:
            return "rests", ""
        if document.status in self._seen:
            return "waits", f"it is {document.status!r} again, because {self._refusal()}"
        self._seen.add(document.status)
        asked = RequestTransition(transition=onward[0].name, org=self._org)
        refusal = self._stage.say(asked, self._actor)
        return None if refusal is None else ("refused", f"{refusal.message} [{refusal.code}]")

    def _refusal(self) -> str:
        """What sent it back."""
        refused = [each for each in self._stage.trail if each.outcome in {"rejected", "blocked", "reject"}]
        return f"{refused[0].node!r} was left by {refused[0].outcome!r}" if refused else "something sent it back"


def _assume(waiting: list[Passage]) -> None:
    """Mark those that have waited and were left."""
    for each in waiting:
        each.is_assumed = bool(each.outcome)


def _line(passage: Passage) -> str:
    left = f" → {passage.outcome}" if passage.outcome else ""
    note = f"  ({passage.note})" if passage.note else ""
    return f"{passage.node}{left}{note}"
