"""From what a caller says of a schedule to its plan: every value checked, so that whatever is wrong is found before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, get_args

import msgspec

from standfast.calls.context import CallContext, checked_id, checked_instant, checked_key, checked_text
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.references import DefinitionLike, checked_definition
from standfast.errors import ExpressionError, ForbiddenError, PayloadError, brief
from standfast.expressions import ExpressionOptions, parse
from standfast.features.documents.publishing.active_version import active_workflow
from standfast.features.documents.writes import spec_of
from standfast.features.schedules.model.plan import CatchUp, Overlap, Plan
from standfast.graph.document_checks import actions_of
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.durations import milliseconds
from standfast.machine.documents.visibility import refuse_masks

READABLE: Final = ("scheduled_at", "scheduled_on", "started_at", "schedule", "number")
"""What expressions of a schedule can read."""
OPTIONS: Final = ExpressionOptions(namespaces=frozenset(READABLE))
MOST_COMPUTED: Final = 50
_LONGEST: Final = datetime.max.replace(tzinfo=UTC)

Length = timedelta | float


class ScheduleTiming(NamedTuple):
    """When a schedule starts its workflow, and what becomes of times that meet a run or were missed."""

    cron: str
    time_zone: str
    every: Length | None
    at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    jitter: Length
    overlap: Overlap | None
    catch_up: CatchUp
    window: Length | None


def plan_of(
    desk: CallContext,
    definition: DefinitionLike,
    input: object,  # noqa: A002 - the word that everybody uses for it
    timing: ScheduleTiming,
    *,
    version: str | int,
    computed: Mapping[str, str] | None,
    note: str,
) -> Plan:
    """The plan of a schedule; PayloadError says what is wrong."""
    name, pinned = checked_definition(definition, version)
    plan = Plan(
        workflow=name,
        version=pinned,
        input=plain_data(input, "input", limit=desk.payload_limit),
        computed=_expressions(computed),
        cron=_cron(timing.cron),
        time_zone=checked_key(timing.time_zone, "time zone"),
        every_ms=_positive(timing.every, "`every`"),
        at=checked_instant(timing.at, "`at`"),
        start_at=checked_instant(timing.start_at, "`start_at`"),
        end_at=checked_instant(timing.end_at, "`end_at`"),
        jitter_ms=milliseconds(timing.jitter, "`jitter`"),
        overlap=checked_overlap(timing.overlap) or "skip",
        catch_up=_one_of(CatchUp, timing.catch_up, "catch_up"),
        window_ms=_positive(timing.window, "`window`"),
        note=checked_text(note, "note"),
    )
    flaws = [each.message for each in plan.findings()]
    if flaws:
        raise PayloadError(f"the schedule cannot be kept: {'; '.join(flaws)}", reason="invalid_schedule")
    return plan


def document_plan(desk: CallContext, plan: Plan, name: str, *, overlap: Overlap | None, document_id: object) -> Plan:
    """The plan of a schedule that creates documents. Whoever puts it may create one; PayloadError says what has no meaning for them."""
    type_, _ = active_workflow(desk, plan.workflow)
    if plan.version:
        raise _unfit("a document begins with the workflow that is in force at its time; leave `version` out")
    check_overlap_of_documents(overlap)
    spec = spec_of(desk, type_)
    refuse_masks(spec, plan.input, desk.request.actor)
    check_creator(desk, type_)
    if not isinstance(document_id, str):
        raise PayloadError(
            f"`document_id` is an expression as text, such as \"'rent-{{scheduled_on}}'\", not {brief(document_id)}"
        )
    stored = _expression("document_id", document_id) if document_id else {}
    checked_id(made_document_id(name, _LONGEST), "document id that is made of the schedule and the time")
    return msgspec.structs.replace(plan, is_document=True, overlap="allow_all", document_id=stored)


def check_creator(desk: CallContext, type_: str) -> None:
    """ForbiddenError unless whoever calls may create documents of a type."""
    capability = actions_of(spec_of(desk, type_))["create"].capability
    if not desk.request.actor.may(capability):
        told = f"{desk.request.actor.id!r} may not create documents of the type {type_!r}: that takes the capability {capability!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)


def check_overlap_of_documents(overlap: Overlap | None) -> None:
    """PayloadError for a policy that has no meaning for documents."""
    if overlap not in {None, "allow_all"}:
        told = "a time that creates a document is over when it is there, however long that lives, so that none meets another"
        raise _unfit(f"{told}: leave `overlap` out, or say 'allow_all', not {overlap!r}")


def made_document_id(schedule: str, at: datetime) -> str:
    """The id of a document that is made of the schedule and the time: a time that comes again is the same document."""
    instant = at.astimezone(UTC)
    return f"{schedule}-{instant:%Y%m%dT%H%M%S}{f'.{instant:%f}' if instant.microsecond else ''}Z"


def _unfit(told: str) -> PayloadError:
    return PayloadError(told, reason="invalid_schedule")


def checked_overlap(given: object) -> Overlap | None:
    """A policy that is not that of the plan, if there is one."""
    return None if given is None else _one_of(Overlap, given, "overlap")


def _expressions(given: object) -> dict[str, dict[str, object]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or len(given) > MOST_COMPUTED:
        raise PayloadError(
            f"`computed` is a mapping of at most {MOST_COMPUTED} names to expressions, not {brief(given)}"
        )
    return {checked_key(name, "name of a computed value"): _expression(name, text) for name, text in given.items()}


def _expression(name: object, text: object) -> dict[str, object]:
    if not isinstance(text, str):
        raise PayloadError(
            f"what computes {name!r} is an expression as text, such as 'scheduled_at', not {brief(text)}"
        )
    try:
        return parse(text, spelling="mapping", options=OPTIONS).to_data()
    except ExpressionError as error:
        raise PayloadError(f"what computes {name!r} cannot be read: {error}", reason="invalid_schedule") from error


def _cron(given: object) -> str:
    return checked_key(given, "cron", may_be_empty=True)


def _one_of(kind: Any, given: object, what: str) -> Any:
    words = get_args(kind)
    if isinstance(given, str) and given in words:
        return given
    raise PayloadError(f"{what} is one of {', '.join(words)}, not {brief(given)}", reason="invalid_schedule")


def _positive(given: object, what: str) -> int:
    """A length of time, if one is given, which then is more than nothing."""
    if given is None:
        return 0
    found = milliseconds(given, what)
    if not found:
        raise PayloadError(f"{what} must be more than nothing; leave it out if there is none")
    return found
