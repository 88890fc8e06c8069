"""What could be done about a wait, as callers see it: the calls that a run would accept, as data and as a sentence.

Which operations there are, and whether they would be accepted, is found out by `machine/remedies` on a copy of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from standfast.machine import remedies as m
from standfast.machine.model.queries.authorization import OVERRIDE, REPAIR, RESUME
from standfast.machine.tasks.actions import ADD_APPROVER, ESCALATE, REASSIGN


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A call that would be accepted, and that brings the run on or ends it."""

    call: str
    """The call of the engine: `run.retry`, `documents.transition`, `tasks.decide`."""
    step_number: int | None = None
    """The step that it is about; None if it is about the whole run."""
    name: str = ""
    """What the call names besides: the transition, the signal, the outcome, or whose task is reassigned."""
    capability: str = ""
    """What the caller needs, besides what the call takes anyway; empty if that depends on the definition."""
    needs_mending: bool = False
    """Whether it would come to the same again as things are: mend what the reason tells first, and then call it."""


class _Call(NamedTuple):
    name: str
    capability: str = ""


_CALLS: Final[dict[m.Operation, _Call]] = {
    "retry": _Call("run.retry", REPAIR),
    "reenqueue": _Call("run.reenqueue", REPAIR),
    "skip": _Call("run.skip", REPAIR),
    "complete": _Call("run.complete_step", REPAIR),
    "resume": _Call("run.resume", RESUME),
    "cancel": _Call("run.cancel"),
    "abort": _Call("run.abort"),
    "change_data": _Call("run.change_data", REPAIR),
    "transition": _Call("documents.transition"),
    "edit": _Call("documents.mutate"),
    "retry_compensation": _Call("dead_letters.retry_compensation", REPAIR),
    "signal": _Call("run.signal"),
    "decide": _Call("tasks.decide"),
    "override": _Call("run.resume", f"{RESUME}, {OVERRIDE}"),
    "escalate": _Call("tasks.escalate", ESCALATE),
    "reassign": _Call("tasks.reassign", REASSIGN),
    "add_approver": _Call("tasks.add_approver", ADD_APPROVER),
}


def remedies(found: Sequence[m.AcceptedOperation]) -> list[Remedy]:
    """The calls that these operations are done by."""
    return [
        Remedy(
            call=_CALLS[each.operation].name,
            step_number=each.step or None,
            name=each.name,
            capability=OVERRIDE if each.is_past_people else _CALLS[each.operation].capability,
            needs_mending=each.is_vain,
        )
        for each in found
    ]


class RemedyText:
    """Operations in words."""

    def __init__(
        self,
        found: Sequence[m.AcceptedOperation],
        *,
        is_process: bool = False,
        lacks: bool = False,
        can_fork: bool = True,
    ) -> None:
        self._found = found
        self._lacks = lacks
        """Whether whoever started the run may not have the step done."""
        self._can_fork = can_fork
        self._is_process = is_process

    def of_step(self) -> str:
        """What can be done to a step that gave up, and to its run."""
        return ", or ".join(filter(None, [self._step(), self._end("the run")]))

    def of_run(self) -> str:
        """What can be done to a run that is paused."""
        mended = self._mended("resume")
        resumed = f"{mended} and resume it" if mended else "resume it" if self._all("resume") else ""
        return ", or ".join(filter(None, [resumed, self._end("it")]))

    def of_question(self) -> str:
        """What can be done about a question that nobody can decide, and to its run."""
        ways = []
        if places := [each.name for each in self._all("reassign")]:
            named = f" of {_either(places)}" if any(places) and len(places) > 1 else ""
            ways.append(f"tasks.reassign gives the place{named} to somebody else")
        ways += ["tasks.add_approver asks somebody as well"] if self._all("add_approver") else []
        ways += ["tasks.escalate puts it to others"] if self._all("escalate") else []
        ways += ["resume looks again"] if self._all("resume") else []
        return "; ".join(filter(None, [*ways, self._end("the run")]))

    def _all(self, operation: m.Operation) -> list[m.AcceptedOperation]:
        return [each for each in self._found if each.operation == operation]

    def _step(self) -> str:
        again, past = "", list(self._past())
        if self._all("retry"):
            again = "try it again by processes.resume" if self._is_process else "retry the step"
        mended = self._mended("retry")
        passed = f"{_or(past)} the step" if past else ""
        if self._lacks:
            ways = "fork the run, or start it anew," if self._can_fork else "start the run anew"
            again = f"have somebody {ways} who may have the step done"
        elif mended:
            again = f"{mended} and {again}"
        elif again and not self._is_process:
            return f"{_or(['retry', *past])} the step"
        return ", or ".join(filter(None, [again, passed]))

    def _past(self) -> Iterator[str]:
        skips = self._all("skip")
        if skips:
            outcomes = [each.name for each in skips if each.name]
            yield f"skip (by {_either(outcomes)})" if outcomes else "skip"
        if self._all("complete"):
            yield "complete"

    def _mended(self, operation: m.Operation) -> str:
        """What has to be done first, if trying again would come to the same."""
        if not any(each.is_vain for each in self._all(operation)):
            return ""
        if self._all("edit"):
            return "correct the document by documents.mutate"
        return "correct its data by change_data" if self._all("change_data") else "mend what it failed on"

    def _end(self, what: str) -> str:
        names = [each.name for each in self._all("transition")]
        if names:
            return f"ask for {_either(names)} by documents.transition"
        if not self._all("cancel"):
            return f"abort {what}" if self._all("abort") else ""
        return f"cancel or abort {what}" if what == "it" else f"cancel {what}"


def _either(names: Sequence[str]) -> str:
    return _or([repr(each) for each in dict.fromkeys(names)])


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
