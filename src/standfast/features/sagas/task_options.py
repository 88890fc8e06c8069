"""The options of a question, in the words of the builder: its form, its times, and how people are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from standfast.expressions.model.suggestions import suggestion
from standfast.features.sagas.builder_state import BuilderState
from standfast.features.sagas.human_tasks import AskOptions
from standfast.features.sagas.notifications import texts
from standfast.features.sagas.options import Duration, milliseconds
from standfast.graph.model import HumanOp, Plain, Rung, TaskTimes
from standfast.graph.nodes.notification import ROLE
from standfast.graph.values.value_checks import some_findings

_NO_TIMES = TaskTimes()


_USER = "user:"
_FOUND = ("manager", "rule", "chain")
"""What `ask` finds people by, and an escalation cannot."""


_SOME = {"form_for": "nobody would have to fill it in", "notify": "nobody would be told"}
"""Options that are lists, and what an empty one would come to."""


class Escalation(msgspec.Struct, frozen=True):
    """A rung of the ladder that a question goes up while nobody answers."""

    after: Duration
    """How long after the question was asked."""
    to: str = ""
    """Who is asked besides: a user, as `user:ann` or the bare id, or a role, as `role:finance`."""
    outcome: str = ""
    """What the question ends by instead."""
    timeout: Duration | None = None
    """How long those who are asked now have: the time of the question begins anew with this length."""


class TaskOptions(AskOptions, total=False):
    """All that can be said of a question: whom it asks, its form, its times, and how people are told."""

    form: dict[str, Plain]
    """What has to be given with the answer, as JSON Schema (draft 2020-12); defaults are filled in."""
    form_for: str | Sequence[str]
    """The outcomes that the form must be filled in for; all but a rejection and an abstention otherwise."""
    due: Duration
    """How long after it is asked an answer is due; shown to whoever sees the question."""
    remind: Duration | Sequence[Duration]
    """How long after it is asked people are reminded, once or several times."""
    remind_every: Duration
    """People are reminded each time that so much time has gone by."""
    escalate: Escalation | Sequence[Escalation]
    """What happens while nobody answers, rung by rung."""
    notify: str | Sequence[str]
    """The channels by which those who are asked are told so, and reminded; reminders alone go by `in_app`."""


def with_options(parts: BuilderState, name: str, op: HumanOp, options: TaskOptions) -> HumanOp:
    """A question with its options; what is wrong with them becomes a finding."""
    known = TaskOptions.__annotations__
    for unknown in sorted(options.keys() - known.keys()):
        told = suggestion(unknown, known) or f"; there are {', '.join(known)}"
        message = f"{name!r} has the option {unknown!r}, which does not exist{told}"
        parts.find("unknown_option", message, name)
    for listed, then in _SOME.items():
        if listed in options:
            given = texts(cast("Sequence[str]", options[listed]))  # type: ignore[literal-required]
            parts.findings += some_findings(name, listed, f"`{listed}` of {name!r}", given, then=then)
    times = TaskTimes(
        due_ms=_optional(options.get("due")),
        reminders_ms=tuple(milliseconds(each) for each in _several(options.get("remind", ()))),
        every_ms=_optional(options.get("remind_every")),
        escalation=tuple(_rung(parts, name, each) for each in _several(options.get("escalate", ()))),
    )
    return msgspec.structs.replace(
        op,
        form=options.get("form"),
        form_for=texts(options.get("form_for", ())),
        times=None if times == _NO_TIMES else times,
        channels=texts(options.get("notify", ())),
    )


def _optional(duration: Duration | None) -> int | None:
    return None if duration is None else milliseconds(duration)


def _several(given: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", given) if isinstance(given, list | tuple) else (given,)


def _rung(parts: BuilderState, name: str, given: object) -> Rung:
    if not isinstance(given, Escalation):
        message = f"{name!r} escalates by {given!r}; give Escalation(after=…, to='role:…'), or a list of them"
        parts.find("escalate", message, name)
        return Rung(after_ms=1)
    kind = given.to.partition(":")[0]
    if kind in _FOUND:
        message = f"{name!r} escalates to {given.to!r}, and nobody is looked up then; name a user as 'user:ann', or a role as 'role:finance'"
        parts.find("escalate", message, name)
    is_role = given.to.startswith(ROLE)
    return Rung(
        after_ms=milliseconds(given.after),
        role=given.to.removeprefix(ROLE) if is_role else "",
        user="" if is_role else given.to.removeprefix(_USER),
        outcome=given.outcome,
        timeout_ms=_optional(given.timeout),
    )
