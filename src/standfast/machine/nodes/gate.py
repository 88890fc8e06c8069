"""A gate performs a transition; a policy gate asks whether an action may be done.

Entered when: a token arrives; a gate waits there while another branch of the document is under way, or a pause of its definition, version or tenant holds it. May do: a gate uses up the approvals of the way to it and moves the document. Both judge by the rights of
the moment whoever they act for; where a directory of the host has the people, it is asked whether somebody who is not there just now is still active. A gate that a rule of the organisation
stands against has failed. Left when: at once: a gate by `reject` if its slot was left by a
rejection, or a refusal stands in it that no approval behind it has answered, by `again` if an approval is void, else by `pass`; a policy gate by `ok` or `denied`, once that is known. On compensation: nothing to undo: no
rollback goes back through a gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from standfast.errors import ExpressionError
from standfast.graph.document_spec import DocumentTransition
from standfast.graph.model import (
    AGAIN,
    DENIED,
    OK,
    PASS,
    REJECT,
    ActionOp,
    DocumentRule,
    GateOp,
    Node,
    PolicyGateOp,
)
from standfast.graph.values.approver_rules import USER, Ask
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.durations import duration_text
from standfast.machine.documents.policies import allowed_both, policy_refusal
from standfast.machine.documents.rules import follow, judge, rules_for
from standfast.machine.flow.action_inputs import Present, acting, present
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import finish, pass_through
from standfast.machine.flow.slots import READY, has_void, hold, refuse_at_end, use_up
from standfast.machine.model.commands.run_commands import PeopleFound, TimeOut
from standfast.machine.model.commands.timers import step_timer
from standfast.machine.model.document_state import Intent
from standfast.machine.model.engine_tasks import FindPeople
from standfast.machine.model.events import DocumentMoved, StepCompleted
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.state import Data, StepState, Token


class GateKind(Kind):
    """Performs a transition."""

    wait_kind = "branches"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Look at the way to it, use up its approvals, and move the document. While a pause of its definition, version or tenant holds it, it waits."""
        if turn.moment.is_held:
            _wait_for_resume(turn, turn.open_step(token, node, asked_at=turn.moment.now.isoformat()))
        elif document_of(turn.state).refused is not None:
            pass_through(turn, token, node, REJECT)
        elif hold(turn, token, node):
            return
        elif refuse_at_end(turn, node):
            pass_through(turn, token, node, REJECT)
        elif has_void(turn, node.id):
            pass_through(turn, token, node, AGAIN)
        elif told := gate_objection(turn, node):
            self.fail(turn, token, node, told)
        elif absent := "" if document_of(turn.state).timed_out else _absent(turn, ""):
            step = turn.open_step(token, node, asked_at=turn.moment.now.isoformat())
            _seek(turn, step, absent)
        elif told := _perform(turn, node):
            self.fail(turn, token, node, told)
        else:
            pass_through(turn, token, node, PASS)

    def may_take_over(self, turn: DecisionBuilder, node: Node) -> bool:
        """Whether the actor may ask for the transition that the gate denies. The engine takes nothing over."""
        actor, transition = turn.moment.actor, _transition(turn, node)
        if node.run_as or actor.kind == "system" or not _unentitled(turn, transition, _here(turn)):
            return False
        return actor.may(transition.capability) and policy_refusal(turn, transition.name, actor) is None

    def time_out(self, turn: DecisionBuilder, step: StepState) -> None:
        """The pause has ended that held it: look again."""
        turn.emit(StepCompleted(step=step.number, outcome=READY))
        turn.move(step.token, step.node, is_asked=True)


def _wait_for_resume(turn: DecisionBuilder, step: StepState) -> None:
    """Have a gate look again once it is not held any more: until then no timer fires."""
    turn.set_timer(step_timer(step.number), 0, TimeOut(step=step.number))


def gate_objection(turn: DecisionBuilder, node: Node) -> str:
    """Why a gate does not perform its transition, rules of the organisation apart: the document is not where it leads on from, or whoever asked for it may not any more."""
    transition, document = _transition(turn, node), document_of(turn.state)
    if document.status not in transition.sources:
        legal = ", ".join(map(repr, transition.sources))
        return f"{transition.name!r} leads on from {legal}, and the document is {document.status!r}"
    return _unentitled(turn, transition, _here(turn))


def _here(turn: DecisionBuilder) -> Present:
    """For whom a gate acts: the engine, if the time of a status was over, or else whoever asked."""
    return Present(SYSTEM) if document_of(turn.state).timed_out else present(turn, "")


def _asked_for(turn: DecisionBuilder, transition: DocumentTransition) -> Intent | None:
    """The request for a transition; None if nobody made one."""
    document = document_of(turn.state)
    is_meant = document.intent is not None and document.intent.transition == transition.name
    return document.intent if is_meant and not document.timed_out else None


def _unentitled(turn: DecisionBuilder, transition: DocumentTransition, now: Present) -> str:
    """Why whoever the gate acts for may not have it perform the transition now. Whoever asked for an earlier one needs no right to what follows by itself."""
    actor = now.actor
    if now.objection or _asked_for(turn, transition) is None:
        return now.objection
    if not actor.may(transition.capability):
        told = f"{actor.id!r} may not ask for {transition.name!r} any more: that needs the capability {transition.capability!r}"
        return f"{told}; have somebody else ask for it"
    barred = policy_refusal(turn, transition.name, actor)
    return "" if barred is None else f"{barred.message}; have somebody else ask for it"


def _transition(turn: DecisionBuilder, node: Node) -> DocumentTransition:
    assert isinstance(node.op, GateOp)
    return index_of(turn.routes).transitions[node.op.transition]


def _ruled(turn: DecisionBuilder, name: str, rules: Sequence[DocumentRule], actor: Actor) -> tuple[list[str], str]:
    """The rules that have an effect on a transition in this commit, and why one of them does not let it be."""
    instead = f"change what it objects to, or the rule; then ask for {name!r} again, or retry the step"
    try:
        found = judge(turn, document_of(turn.state).data, rules, actor=actor, may_set=False)
    except ExpressionError as error:
        return [], f"a rule cannot be judged at {name!r}: {error}; {instead}"
    if found.blocked:
        return [], f"a rule of the organisation stands against {name!r}: {found.blocked}; {instead}"
    return found.held, ""


def _perform(turn: DecisionBuilder, node: Node) -> str:
    """Use up the approvals, and move the document, unless a rule stands against it; why not."""
    document, transition, now = document_of(turn.state), _transition(turn, node), _here(turn)
    rules = rules_for(turn, transition.name)
    held, told = _ruled(turn, transition.name, rules, now.actor)
    if told:
        return told
    approved = [step for step, each in document.approvals.items() if each.verdict == "approved"]
    use_up(turn, approved, transition=transition.name)
    asked = _asked_for(turn, transition)
    intent = document.intent if document.intent is not None and document.intent.transition else None
    by = turn.moment.actor.id if intent is None else intent.by
    if document.timed_out:
        intent, by = None, SYSTEM.id
    turn.emit(
        DocumentMoved(
            status=transition.target,
            how="passed",
            transition=transition.name,
            by=by,
            on_behalf_of="" if intent is None else intent.on_behalf_of,
            reason=_over(turn) if asked is None else asked.reason,
            access_version=0 if intent is None else now.version,
        )
    )
    if asked is None:  # No request was made, so no notice was sent yet.
        follow(turn, transition.name, rules, before=held, actor=now.actor)
    return ""


def _over(turn: DecisionBuilder) -> str:
    """The timer that a transition follows from, if one was over."""
    status = document_of(turn.state).timed_out
    if not status:
        return ""
    limit = turn.routes.node(index_of(turn.routes).state_of[status]).timeout_ms or 0
    return f"timeout of {status!r} after {duration_text(timedelta(milliseconds=limit))}"


class PolicyGateKind(Kind):
    """Asks whether an action may be done."""

    wait_kind = "people"

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Ask; without a way for those who may not the step has failed."""
        absent = _absent(turn, node.run_as)
        if absent:
            _seek(turn, turn.open_step(token, node), absent)
            return
        policy, objection = _judged(turn, node)
        if not objection:
            pass_through(turn, token, node, OK, output=policy)
        elif turn.routes.ways(node.id, DENIED):
            pass_through(turn, token, node, DENIED)
        else:
            self.fail(turn, token, node, objection)

    def may_take_over(self, turn: DecisionBuilder, node: Node) -> bool:
        """Whether the actor may do what the gate denies. The engine takes nothing over."""
        actor = turn.moment.actor
        return not node.run_as and actor.kind != "system" and not _judged(turn, node, actor)[1]


def _seek(turn: DecisionBuilder, step: StepState, name: str) -> None:
    """Have a directory of the host asked whether somebody is active."""
    turn.send_out(FindPeople(step=step.number, node=step.node, asks=[Ask(by=USER, of=name)], in_person=True))


def actor_found(turn: DecisionBuilder, step: StepState, command: PeopleFound) -> None:
    """It was looked up whether somebody is active: who is not may do nothing any more, and nor may who could not be looked up."""
    node = turn.routes.node(step.node)
    lost = ""
    if not command.people:
        why = command.error or "they are deactivated; have somebody else ask for it"
        lost = f"{acting(turn, node.run_as).id!r} may not act any more: {why}"
    if isinstance(node.op, GateOp):
        _asked_at_gate(turn, step, node, lost)
        return
    policy, objection = _judged(turn, node)
    if not (lost or objection):
        finish(turn, step, OK, policy)
    elif turn.routes.ways(node.id, DENIED):
        finish(turn, step, DENIED)
    else:
        give_up(turn, step, lost or objection)


def _asked_at_gate(turn: DecisionBuilder, step: StepState, node: Node, lost: str) -> None:
    """Go on at a gate; what was looked at before is looked at again, because others may have changed it meanwhile."""
    if turn.moment.is_held:
        _wait_for_resume(turn, step)
    elif has_void(turn, node.id):
        finish(turn, step, AGAIN)
    elif told := lost or gate_objection(turn, node) or _perform(turn, node):
        give_up(turn, step, told)
    else:
        finish(turn, step, PASS)


def _absent(turn: DecisionBuilder, run_as: str) -> str:
    """In whose name a step acts, if only a directory of the host can tell whether they still may: whoever asks now was let in just now."""
    if run_as or not turn.state.looks_up:
        return ""
    now = present(turn, run_as)
    is_to_be_sought = now.is_elsewhere and now.actor.kind == "user" and now.actor.id != turn.moment.actor.id
    return now.actor.id if is_to_be_sought else ""


def _judged(turn: DecisionBuilder, node: Node, actor: Actor | None = None) -> tuple[Data | None, str]:
    """By which policy an action may be done, and why it may not: by whoever asked for the transition, unless another one is meant."""
    assert isinstance(node.op, PolicyGateOp)
    now = present(turn, node.run_as) if actor is None else Present(actor)
    if now.objection:
        return None, now.objection
    index = index_of(turn.routes)
    if node.op.of and node.op.of != index.spec.entity_type:
        return None, ""
    return allowed_both(turn, _guarded(turn, node), now.actor, is_lent=bool(node.run_as))


def _guarded(turn: DecisionBuilder, node: Node) -> ActionOp:
    """The action that a policy gate stands before."""
    assert isinstance(node.op, PolicyGateOp)
    behind = (turn.routes.node(each.target).op for each in turn.routes.ways(node.id, OK))
    found = next((each for each in behind if isinstance(each, ActionOp) and each.action == node.op.action), None)
    return found or ActionOp(action=node.op.action)
