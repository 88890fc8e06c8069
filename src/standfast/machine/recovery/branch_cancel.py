"""One branch of several is cancelled: the others go on, and are waited for without it. Never where a gate or an approval would be got past."""

from __future__ import annotations

from standfast.graph.model import JoinOp
from standfast.kernel.decision import Rejection
from standfast.machine.flow.cancellation import unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import end_branches, look_at_branches
from standfast.machine.flow.unneeded_branches import drop
from standfast.machine.model.commands.repair_commands import CancelBranch
from standfast.machine.model.events import BranchCancelled
from standfast.machine.model.queries.branches import branch_of
from standfast.machine.model.queries.eligibility import ending_refusal, questions_among
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import BranchScope, RunState, StepState
from standfast.machine.recovery.human_decisions import past_branch_refusal, past_refusal
from standfast.machine.recovery.pause import OF_A_STEP, go_on
from standfast.machine.recovery.protection import ahead, is_protected, protected

_CANCELLED = "an operator cancelled the branch"


def cancel_branch(turn: DecisionBuilder, command: CancelBranch) -> Rejection | None:
    """End a branch with everything below it. A run that waits because steps of it gave up goes on."""
    state, name = turn.state, command.token
    waits = state.status == "paused" and state.reason in OF_A_STEP
    token = state.token(name)
    if token is None:
        return refused(Refusal.UNKNOWN_TOKEN, f"the workflow has no token {name!r} any more; {_others(state)}")
    scope = None if token.scope is None else state.scopes.get(token.scope)
    if scope is None:
        told = f"{name!r} is no branch that others are waited for with; cancel the workflow, or skip the step"
        return refused(Refusal.NOT_REPAIRABLE, f"{told}; {_others(state)}")
    refusal = _refusal(turn, scope, name)
    if refusal is not None:
        return refusal
    within = frozenset({name})
    steps = [step for step in unended(turn) if step.of is None and branch_of(step.token, within)]
    actor = turn.moment.actor
    asked = questions_among(turn.routes, _open_on(state, within)) if turn.routes.tells_deciders_apart else []
    turn.emit(
        BranchCancelled(
            token=name,
            actor=actor.id,
            reason=command.reason,
            on_behalf_of=actor.on_behalf_of,
            decided=list(dict.fromkeys(step.node for step in asked)),
        )
    )
    turn.stops_for(f"{actor.id!r}: {command.reason}")
    gave_up = any(step.number in state.dead for step in steps)
    end_branches(turn, [name], error=f"{_CANCELLED}: {command.reason}")
    if gave_up and waits and not state.dead:
        go_on(turn)
    join = turn.routes.join_of(scope.node)
    if join is not None and isinstance(join.op, JoinOp) and join.op.losers != "stop":
        drop(turn, [name], _CANCELLED)
    look_at_branches(turn, scope.step)
    return None


def _refusal(turn: DecisionBuilder, scope: BranchScope, name: str) -> Rejection | None:
    """Why a branch cannot be cancelled, although it is one."""
    state = turn.state
    if state.pause is not None:
        return refused(Refusal.ALREADY_PAUSED, "somebody has paused it; resume it first, and cancel the branch then")
    if name in scope.arrived:
        return refused(
            Refusal.NOT_REPAIRABLE, f"{name!r} has arrived where the branches meet, and has nothing left to do"
        )
    if len(scope.live) == 1 and not scope.items:
        told = f"{name!r} is the last branch of {scope.node!r}, and nothing would be left; skip its step, or cancel the workflow"
        return refused(Refusal.NOT_REPAIRABLE, told)
    within, join = frozenset({name}), turn.routes.join_of(scope.node)
    tokens = [each.node for each in (*state.tokens.values(), *state.parked.values()) if branch_of(each.id, within)]
    nodes = ahead(turn.routes, tokens, until="" if join is None else join.id)
    gate = next((node for node in nodes if is_protected(node)), None)
    if gate is not None:
        return protected(gate)
    barred = ending_refusal(turn.routes, state, _open_on(state, within), turn.moment.actor)
    barred = barred or past_branch_refusal(turn, name, until="" if join is None else join.id)
    for node in nodes:
        barred = barred or past_refusal(turn, node, f"cancel a branch on which {node.id!r} decides")
    return barred


def _open_on(state: RunState, within: frozenset[str]) -> list[StepState]:
    """The steps that are open on a branch."""
    return [step for step in state.open.values() if branch_of(step.token, within)]


def _others(state: RunState) -> str:
    live = [name for scope in state.scopes.values() for name in scope.live if name not in scope.arrived]
    return f"these branches are under way: {', '.join(map(repr, live))}" if live else "no branch is under way"
