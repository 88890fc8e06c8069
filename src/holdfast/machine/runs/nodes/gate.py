"""A gate performs a transition; a policy gate asks whether an action may be done.

Entered when: a token arrives; a gate waits there while another branch of the document is under way. May do: a gate uses up the approvals of the way to it and moves the document; a policy gate has it looked up whether
somebody who is not there just now, and in whose name the action is done, is still active. A gate that a rule of the organisation
stands against has failed. Left when: at once: a gate by `reject` if its slot was left by a
rejection, by `again` if an approval is void, else by `pass`; a policy gate by `ok` or `denied`, once that is known. On compensation: nothing to undo: no
rollback goes back through a gate.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import ExpressionError
from holdfast.kernel.actor import Actor
from holdfast.machine.graphs.asks import USER, Ask
from holdfast.machine.graphs.graph import AGAIN, DENIED, OK, PASS, REJECT, DocumentRule, Gate, Node, PolicyGate
from holdfast.machine.runs.acting import acting
from holdfast.machine.runs.commands import PeopleFound
from holdfast.machine.runs.errands import FindPeople
from holdfast.machine.runs.events import ApprovalsApplied, DocumentMoved
from holdfast.machine.runs.failures import give_up
from holdfast.machine.runs.leaving import finish, pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.policies import POLICY, asked_of, judged
from holdfast.machine.runs.rules import follow, judge, rules_for
from holdfast.machine.runs.slots import has_void, hold, void
from holdfast.machine.runs.state import Data, Step, Token
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of, index_of


class GateKind(Kind):
    """Performs a transition."""

    wait_kind = "branches"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Look at the way to it, use up its approvals, and move the document."""
        assert isinstance(node.op, Gate)
        document = document_of(turn.state)
        transition = index_of(turn.routes).transitions[node.op.transition]
        if document.refused is not None:
            pass_through(turn, token, node, REJECT)
            return
        if hold(turn, token, node):
            return
        if has_void(turn, node.id):
            pass_through(turn, token, node, AGAIN)
            return
        if document.status not in transition.sources:
            legal = ", ".join(map(repr, transition.sources))
            told = f"{transition.name!r} leads on from {legal}, and the document is {document.status!r}"
            self.fail(turn, token, node, told)
            return
        rules = rules_for(turn, transition.name)
        held, objection = _ruled(turn, transition.name, rules)
        if objection:
            self.fail(turn, token, node, objection)
            return
        void(turn, [step for step, each in document.approvals.items() if each.is_kept], "entered_again")
        applied = [step for step, each in document.approvals.items() if each.verdict == "approved"]
        if applied:
            turn.emit(ApprovalsApplied(steps=applied, transition=transition.name))
        intent = document.intent if document.intent is not None and document.intent.transition else None
        turn.emit(
            DocumentMoved(
                status=transition.target,
                how="passed",
                transition=transition.name,
                by=turn.moment.actor.id if intent is None else intent.by,
                on_behalf_of="" if intent is None else intent.on_behalf_of,
                reason="" if intent is None or intent.transition != transition.name else intent.reason,
            )
        )
        if intent is None or intent.transition != transition.name:  # No request was made, so no notice was sent yet.
            follow(turn, transition.name, rules, before=held, actor=acting(turn, ""))
        pass_through(turn, token, node, PASS)


def _ruled(turn: Turn, transition: str, rules: Sequence[DocumentRule]) -> tuple[list[str], str]:
    """The rules that have an effect on a transition in this commit, and why one of them does not let it be."""
    instead = f"change what it objects to, or the rule; then ask for {transition!r} again, or retry the step"
    try:
        judged_ = judge(turn, document_of(turn.state).data, rules, actor=acting(turn, ""), may_set=False)
    except ExpressionError as error:
        return [], f"a rule cannot be judged at {transition!r}: {error}; {instead}"
    if judged_.blocked:
        return [], f"a rule of the organisation stands against {transition!r}: {judged_.blocked}; {instead}"
    return judged_.held, ""


class PolicyGateKind(Kind):
    """Asks whether an action may be done."""

    wait_kind = "people"

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask; without a way for those who may not the step has failed."""
        absent = _absent(turn, node)
        if absent:
            step = turn.open_step(token, node)
            turn.send_out(FindPeople(step=step.number, node=node.id, asks=[Ask(by=USER, of=absent)], in_person=True))
            return
        policy, objection = _judged(turn, node)
        if not objection:
            pass_through(turn, token, node, OK, output=policy)
        elif turn.routes.ways(node.id, DENIED):
            pass_through(turn, token, node, DENIED)
        else:
            self.fail(turn, token, node, objection)


def actor_found(turn: Turn, step: Step, command: PeopleFound) -> None:
    """It was looked up whether somebody is active: who is not may do nothing any more, and nor may who could not be looked up."""
    node = turn.routes.node(step.node)
    policy, objection = _judged(turn, node)
    if not command.people:
        why = command.error or "they are deactivated; have somebody else ask for it"
        objection = f"{acting(turn, node.run_as).id!r} may not act any more: {why}"
    if not objection:
        finish(turn, step, OK, policy)
    elif turn.routes.ways(node.id, DENIED):
        finish(turn, step, DENIED)
    else:
        give_up(turn, step, objection)


def _absent(turn: Turn, node: Node) -> str:
    """In whose name a step acts, if it is to be looked up whether they still may: whoever asks now was let in just now."""
    if node.run_as or not turn.state.looks_up:
        return ""
    actor = acting(turn, node.run_as)
    return actor.id if actor.kind == "user" and actor.id != turn.moment.actor.id else ""


def may_take_over(turn: Turn, node: Node) -> bool:
    """Whether whoever acts now may do what a policy gate denies to whoever asked for the transition. The engine takes nothing over."""
    actor = turn.moment.actor
    return not node.run_as and actor.kind != "system" and not _judged(turn, node, actor)[1]


def _judged(turn: Turn, node: Node, actor: Actor | None = None) -> tuple[Data | None, str]:
    """By which policy an action may be done, and why it may not: by whoever asked for the transition, unless another one is meant."""
    assert isinstance(node.op, PolicyGate)
    index = index_of(turn.routes)
    if node.op.of and node.op.of != index.spec.entity_type:
        return None, ""
    action, actor = index.actions[node.op.action], actor or acting(turn, node.run_as)
    judgement = judged(index, action.name, actor, asked_of(turn, action.name, actor), is_lent=bool(node.run_as))
    if actor.may(action.capability) and not judgement.objection:
        return {POLICY: judgement.policy} if judgement.policy else None, ""
    why = judgement.objection or f"that needs the capability {action.capability!r}"
    return None, f"{actor.id!r} may not do {action.name!r}: {why}"
