"""Where a workflow stands, in sentences for people: what is wrong with it and what to do about that, or what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from standfast.graph.model import Graph, Op, WaitEventOp, WaitEventsOp
from standfast.machine.model.state import RunState
from standfast.machine.nodes import kind_of
from standfast.machine.recovery.pause import APPROVED, DRIFTED

Work = Literal["here", "elsewhere", "nowhere", "driven"]
"""Where workers run: in this process, in others only, in none; or whoever holds the engine drives it."""

OPERATOR = "the workflow waits for an operator"
"""How the standing of one begins that nothing else can bring on."""

_REQUEUE = "requeue its dead letter, with another input if need be, or cancel the workflow"
_REQUEUE_OF_DOCUMENT = "requeue its dead letter once that is mended, or ask for another transition of the document"
_RETRY = (
    "try it again with retry_compensation of its dead letter (until that is discarded), "
    "or, if you undid it by hand, skip step {} of this workflow"
)
_CHILD = (
    "have it undone there, with retry_compensation of its own dead letter, and this workflow goes on by itself; "
    "or, if you undid it by hand, skip step {} of this workflow"
)
_WAITS = {
    "human": "waits for a person to decide",
    "timer": "waits for its time to come",
    "child": "waits for another workflow to end",
}


def trouble(state: RunState) -> str:
    """Why a workflow waits for an operator, or has ended badly: which step, what it said, what to do; empty if it does neither."""
    if state.status == "paused":
        return _why_paused(state)
    if state.status != "failed":
        return state.error
    if state.reason == "compensation_failed":
        cause = "" if state.rollback is None else state.rollback.error or state.rollback.reason
        return f"{state.error}; {_undoing(state)}" + (f" (it turned back because of: {cause})" if cause else "")
    failed = None if state.rollback is None else state.executed.get(state.rollback.failed_step or 0)
    return state.error if failed is None else _said(failed.node, "failed", state.error)


def _why_paused(state: RunState) -> str:
    if state.dead and state.pause is None:
        told = [_said(step.node, "gave up", step.error) for step in state.dead.values()]
        return f"{', and '.join(told)}; {_REQUEUE if state.document is None else _REQUEUE_OF_DOCUMENT}"
    ended = "resume or cancel it" if state.document is None else "resume it, or ask for a transition of the document"
    if state.pause is not None and state.reason == APPROVED:
        return f"{state.error}, and it goes on when somebody, or the worker for that, resumes it; {ended}"
    if state.pause is not None and state.reason == DRIFTED:
        return f"{state.error}; {ended}"
    if state.pause is not None:
        why = f": {state.error}" if state.error else ""
        return f"{state.pause.by!r} has paused it{why}; {ended}"
    match state.reason:
        case "compensation_failed":
            remedy = _undoing(state)
        case "no_approver":
            remedy = "add an approver, reassign the task, or resume the workflow to look again"
        case _:
            remedy = ended
    return f"{state.error}; {remedy}"


def _undoing(state: RunState) -> str:
    """What brings a rollback on that has halted: at the step itself, or at the child that it called."""
    halted = state.rollback or state.dropped
    if halted is None or halted.stuck is None:
        return "run.why() tells what it waits for"
    return (_CHILD if state.executed[halted.stuck].not_undone else _RETRY).format(halted.stuck)


def _said(node: str, what: str, error: str) -> str:
    """What became of a step; what the machine itself says of one begins with its name."""
    return error if error.startswith(repr(node)) else f"{node!r} {what}: {error}"


def standing(state: RunState, graph: Graph, *, work: Work, held: str) -> str:
    """What a workflow that has not ended is at, or what keeps it. `held` says what holds up its work, maintenance mode or a pause."""
    if state.status == "paused":
        return f"{OPERATOR}: {trouble(state)}"
    if held:
        return held
    calls = [step.node for step in state.open.values() if step.effect is not None]
    calls += [state.executed[number].node for number in state.stopping]
    told = [_at(list(dict.fromkeys(calls)), work)] if calls else []
    told += [", ".join(waits)] if (waits := list(_waits(state, graph))) else []
    if work == "nowhere":
        told.append("no worker runs, in this process or another: start_worker() starts one")
    elif work == "elsewhere":
        told.append("no worker runs in this process: start_worker() starts one")
    return "; ".join(told) or "the work goes on"


def _at(nodes: list[str], work: Work) -> str:
    names = ", ".join(map(repr, nodes))
    if work in {"nowhere", "driven"}:
        return f"{names} waits for a worker"
    return f"the work goes on{' in another process' if work == 'elsewhere' else ''}, at {names}"


def _waits(state: RunState, graph: Graph) -> Iterator[str]:
    """What the world has to bring."""
    for step in state.open.values():
        if step.effect is None:
            node = graph.nodes[step.node]
            what = _awaited(node.op)
            yield f"{step.node!r} {what or _WAITS.get(kind_of(node).wait_kind, 'is under way')}"


def _awaited(op: Op) -> str:
    """What a step waits for by name; empty if it has none."""
    match op:
        case WaitEventOp(signal=signal):
            return f"waits for the signal {signal!r}"
        case WaitEventsOp():
            return f"waits for the event {op.detail!r}" if len(op.events) == 1 else f"waits for events: {op.detail}"
        case _:
            return ""
