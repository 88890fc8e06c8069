"""What an answer does to the data of a token: where it is found there, and whether there is room for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp, WaitEventOp, WaitEventsOp
from standfast.kernel.codec.depth import DEEPEST, is_deep, is_flat_json
from standfast.kernel.decision import Rejection
from standfast.machine.model.events import StepAnswered
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.task_state import by_approver

Data = dict[str, object]

LAST_ERROR = "_last_error"
"""Where the data of a process tells of the last failure that it went on from; null once the step that failed has succeeded."""

ANSWERS = "_answers"
"""Where the data of a process keeps what each of several approvers gave: by step, and then by the name of the approver."""

HIDDEN = "_"
"""How names of the data of a process begin that only the engine sets."""

_encode = msgspec.json.Encoder().encode


def hidden_name(given: object) -> str | None:
    """A name in what somebody gives to a process that only the engine sets; None if there is none."""
    return next((name for name in given if name.startswith(HIDDEN)), None) if isinstance(given, dict) else None


def hidden_of(routes: GraphIndex, data: Data) -> Data:
    """What only the engine has set in the data of a run."""
    if routes.graph.kind != "process":
        return {}
    return {name: value for name, value in data.items() if name.startswith(HIDDEN)}


def hidden_refusal(routes: GraphIndex, given: object, own: Data | None = None) -> Rejection | None:
    """Why nobody gives something to a process: it sets a name that only the engine sets. What is `own` already may be given as it is."""
    if routes.graph.kind != "process" or not isinstance(given, dict):
        return None
    kept = own or {}
    other = {name: value for name, value in given.items() if name not in kept or kept[name] != value}
    name = hidden_name(other)
    return None if name is None else refused(Refusal.INVALID_FORM, hidden_told(name))


def hidden_told(name: str) -> str:
    """What somebody is told who gives such a name."""
    return f"{name!r} is a name that only the engine sets; give it another one"


def decision_of(event: StepAnswered) -> Data:
    """What was answered, as the steps behind find it."""
    told: Data = {
        "status": event.outcome,
        "decided_by": event.actor,
        "decided_at": event.at,
        "comment": event.comment,
        "data": event.data,
    }
    if event.reason:
        told["reason"] = event.reason
    if event.decisions:
        told["decisions"] = event.decisions
    if event.document_version:
        told["document_version"] = event.document_version
    return told


def answer_found(routes: GraphIndex, node: str, event: StepAnswered) -> Data:
    """What the answer to a question does to the data: all that was answered, or what was given with it and who gave it."""
    op = routes.node(node).op
    if not isinstance(op, HumanOp) or not op.lays_over:
        return decision_of(event)
    if event.decisions:
        return _of_several(op, node, event)
    return _signed(op, event.outcome, event.actor, event.data)


def _signed(op: HumanOp, outcome: str, actor: object, data: object) -> Data:
    """What was given with an answer, and who gave it."""
    name = op.signs.get(outcome)
    return {**({name: actor} if name else {}), **(data if isinstance(data, dict) else {})}


def _of_several(op: HumanOp, node: str, event: StepAnswered) -> Data:
    """The last answer of the outcome that won, if there is one, and what all of them gave."""
    won = next((each for each in reversed(event.decisions) if each["status"] == event.outcome), None)
    found = {} if won is None else _signed(op, event.outcome, won["decided_by"], won["data"])
    given = by_approver((str(each["on_behalf_of"] or each["decided_by"]), each["data"]) for each in event.decisions)
    return {**found, ANSWERS: {node: given}} if given else found


def name_of(routes: GraphIndex, node: str, output: object) -> str:
    """The name under which the data holds an answer; empty if an object is laid over the data, name by name."""
    return "" if isinstance(output, dict) and not routes.is_named(node) else routes.answer_name(node)


def merged(routes: GraphIndex, data: Data, node: str, output: object) -> Data:
    """A token's data after the answer of a step; no answer changes nothing."""
    if output is None:
        return data
    name = name_of(routes, node, output)
    return {**data, name: output} if name else {**data, **_laid_over(routes, data, node, cast("Data", output))}


def _laid_over(routes: GraphIndex, data: Data, node: str, output: Data) -> Data:
    """What an answer lays over the data: an event that a process waited for sets no name that only the engine sets."""
    if routes.graph.kind != "process":
        return output
    if isinstance(routes.node(node).op, WaitEventOp | WaitEventsOp):
        return {name: value for name, value in output.items() if not name.startswith(HIDDEN)}
    kept, given = data.get(ANSWERS), output.get(ANSWERS)
    return {**output, ANSWERS: {**kept, **given}} if isinstance(kept, dict) and isinstance(given, dict) else output


def judged(routes: GraphIndex, data: Data, node: str, output: object) -> Data:
    """The data by which the ways on from a node are judged. Nobody can open one by what they lay over it with their own answer."""
    op = routes.node(node).op
    return data if isinstance(op, HumanOp) and op.lays_over else merged(routes, data, node, output)


def without(data: Data, place: Sequence[str]) -> Data:
    """The data without what is found at this place."""
    head, *rest = place
    inner = data.get(head)
    if not rest:
        return {name: value for name, value in data.items() if name != head}
    return {**data, head: without(inner, rest)} if isinstance(inner, dict) else data


def is_within(routes: GraphIndex, value: object) -> bool:
    """Whether a value is small and flat enough to be the data of a token."""
    try:
        data = _encode(value)
    except RecursionError:
        return False
    return len(data) <= routes.limit and (is_flat_json(data) or not is_deep(value))


def may_become(routes: GraphIndex, data: Data, changed: Data) -> bool:
    """Whether an operator may give a token other data: what is too large already, because the limit was another one, may become smaller."""
    if is_within(routes, changed):
        return True
    return not is_deep(changed) and len(_encode(changed)) <= len(_encode(data))


def fits(routes: GraphIndex, data: Data, node: str, output: object) -> bool:
    """Whether a token with this data can take an answer."""
    return output is None or is_within(routes, merged(routes, data, node, output))


def _where(routes: GraphIndex) -> str:
    """Where the limit stands."""
    return "`limits.context` of the contract" if routes.limit == routes.policies.max_bytes else "max_payload_bytes"


def overflow(routes: GraphIndex, what: str) -> str:
    """What is wrong with something that does not fit."""
    return (
        f"{what} would make the data larger than {routes.limit} bytes, or deeper than {DEEPEST} levels: "
        f"keep large data elsewhere and pass a reference, or raise {_where(routes)}"
    )


def too_large(routes: GraphIndex, what: str) -> Rejection:
    """What somebody is told who sends something that does not fit."""
    return refused(Refusal.TOO_LARGE, overflow(routes, what))
