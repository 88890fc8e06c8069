"""A run that begins where another one was: what it takes over, and what is asked for again.

Its own are the calls, with their idempotency keys, the timers, which begin anew, and the children. What the other run did is not undone by
this one: both would undo it.
"""

from __future__ import annotations

import msgspec

from standfast.graph.index import GraphIndex
from standfast.kernel.decision import Rejection
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import end, leave_by, look_at_branches, way_out
from standfast.machine.model.commands.repair_commands import ForkWorkflow
from standfast.machine.model.commands.run_commands import PassDeadline
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.events import WorkflowForked
from standfast.machine.model.folds.task_fold import note_names
from standfast.machine.model.json_values import patched
from standfast.machine.model.queries.authorization import OVERRIDE
from standfast.machine.model.queries.eligibility import acting_names
from standfast.machine.model.queries.outputs import hidden_refusal, is_within, too_large
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import ROOT, Data, RunState, Stay
from standfast.machine.recovery.human_decisions import say_above
from standfast.machine.recovery.involved_people import keep_refusal
from standfast.machine.recovery.passed_steps import (
    approvals_kept,
    decisions_passed,
    nodes_passed,
    under_way,
)
from standfast.machine.recovery.pause import APPROVED
from standfast.machine.recovery.repair import may_repair

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RunState).decode


def fork(turn: DecisionBuilder, command: ForkWorkflow) -> Rejection | None:
    """Begin where another run was."""
    refusal = may_repair(turn, command.reason)
    if refusal is not None:
        return refusal
    problem = fork_problem(turn.routes, command.state)
    if problem:
        return refused(Refusal.NO_FORK, f"no workflow can begin where {command.origin} was at {command.at}: {problem}")
    refusal = hidden_refusal(turn.routes, command.patch) or (_other_data(turn, command) if command.patch else None)
    if refusal is not None:
        return refusal
    state = beginning(command.state, command.patch)
    actor = turn.moment.actor
    state.involve(acting_names(actor))
    for node in (
        approvals_kept(turn.routes, command.state) if command.patch and turn.routes.tells_deciders_apart else ()
    ):
        note_names(state, node, acting_names(actor))
    if actor.kind != "system" and turn.routes.asks_starter:
        state.starter, state.may = actor.id, sorted(actor.capabilities)
    state.has_row = turn.routes.graph.kind == "process"
    if not all(is_within(turn.routes, token.data) for token in (*state.tokens.values(), *state.parked.values())):
        return too_large(turn.routes, "the patch")
    turn.emit(
        WorkflowForked(
            origin=command.origin,
            at=command.at,
            input=command.input,
            state=state,
            actor=turn.moment.actor.id,
            reason=command.reason,
        )
    )
    deadline = turn.routes.policies.deadline_ms
    if deadline is not None:
        turn.set_timer(DEADLINE, deadline, PassDeadline())
    _ask_again(turn, command.state)
    return None


def _other_data(turn: DecisionBuilder, command: ForkWorkflow) -> Rejection | None:
    """Why a run may not begin with other data: people decided on what there was, or those of the run have a say that it was a part of."""
    actor = turn.moment.actor
    if actor.may(OVERRIDE):
        return keep_refusal(turn, command.state)
    lost = decisions_passed(turn, command.state)
    if lost:
        told = f"{', '.join(map(repr, lost))} was decided on other data; fork where it is still open, so that it is asked again"
        return refused(Refusal.NO_FORK, told)
    above = say_above(turn, command.state)
    if not above:
        return None
    told = f"{actor.id!r} may not give a part of a run other data: people have a say there ({above})"
    return refused(Refusal.NOT_ALLOWED, f"{told}, so that needs {OVERRIDE!r} as well")


def _ask_again(turn: DecisionBuilder, before: RunState) -> None:
    """Tokens enter the nodes again that they were at, and those go on that were held."""
    for step in under_way(before):
        turn.move(step.token, step.node, is_asked=True)
    for token in before.tokens.values():
        if token.stay is not None:
            _go_on(turn, token.id, token.stay)
    if _has_only_begun(before):
        turn.move(ROOT, turn.routes.graph.entry)
    for number in list(turn.state.scopes):
        look_at_branches(turn, number)


def _go_on(turn: DecisionBuilder, name: str, stay: Stay) -> None:
    if stay.target:
        turn.move(name, stay.target, is_asked=True)
        return
    token = turn.state.tokens[name]
    edge = way_out(turn, token, stay.node, stay.outcome)
    if edge is None:
        end(turn, token)
    else:
        leave_by(turn, token, edge)


def _has_only_begun(state: RunState) -> bool:
    """Whether the first step is still put off."""
    return state.next_step == 1


def fork_problem(routes: GraphIndex, state: RunState) -> str:
    """Why no run can begin where another one was; empty if one can."""
    if state.status == "new":
        return "it had not begun"
    if routes.documents is not None:
        return "it is a document, of which there is one; create another"
    if state.is_terminal:
        return "it had ended; take an earlier point"
    if state.rollback is not None or state.dropped is not None or state.stopping:
        return "it was undoing or stopping what it had done; take an earlier point"
    for node in nodes_passed(state):
        if routes.node(node).op.is_protected:
            return f"it had passed {node!r}, a protected gate, which nobody passes without its leave; take an earlier point"
    return "" if _rests(state) else "it was in the midst of a decision"


def paused_problem(state: RunState) -> str:
    """Why no run can begin where this one was at any point, as this one is now; empty if one can. A fork would go past a pause that was requested."""
    pause = state.pause
    if pause is None or state.is_terminal or state.reason == APPROVED:
        return ""
    return f"{pause.by!r} has paused it ({state.error}), and that lasts until it is resumed; resume it first, and fork it then"


def _rests(state: RunState) -> bool:
    """Whether every token waits for something, so that it is known where each goes on."""
    waiting = {step.token for step in under_way(state)}
    waiting.update(name for scope in state.scopes.values() for name in scope.arrived)
    waiting.update(token.id for token in state.tokens.values() if token.stay is not None)
    return bool(state.tokens) and (_has_only_begun(state) or waiting >= set(state.tokens))


def beginning(origin: RunState, patch: Data) -> RunState:
    """The state of a run that begins where another one was: nothing is under way, and nothing of what was done is its own to undo."""
    state = _decode(_encode(origin))
    for step in under_way(state):
        visits = state.tokens[step.token].visits
        visits[step.node] -= 1
        if not visits[step.node]:
            del visits[step.node]
    for executed in state.executed.values():
        executed.was_called = executed.is_done = False
        executed.input = executed.output = executed.retry_of = None
        executed.child = executed.not_undone = executed.error = ""
        executed.is_undoable = executed.is_settled = executed.is_recalled = False
    for token in (*state.tokens.values(), *state.parked.values()):
        token.stay = token.retry_of = None
        token.first = 0
        token.data = patched(token.data, patch)
    state.open, state.dead, state.frozen, state.questions = {}, {}, {}, {}
    state.status, state.reason, state.error = "running", "", ""
    state.above = state.parent or state.above
    state.parent, state.parent_definition, state.parent_step = "", "", 0
    state.chain, state.result = 0, None
    return state
