"""A gate performs a transition; a policy gate asks whether an action may be done.

Entered when: a token arrives. May do: a gate uses up the approvals of the way to it and moves the document. Left when: at once: a gate by `reject` if
its slot was left by a rejection, by `again` if an approval is void, else by `pass`; a policy gate by `ok` or `denied`. On compensation: nothing
to undo: no rollback goes back through a gate.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import AGAIN, DENIED, OK, PASS, REJECT, Gate, Node, PolicyGate
from holdfast.machine.runs.acting import acting
from holdfast.machine.runs.events import ApprovalsApplied, DocumentMoved
from holdfast.machine.runs.leaving import pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.policies import POLICY, asked_of, judged
from holdfast.machine.runs.slots import has_void
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of, index_of


class GateKind(Kind):
    """Performs a transition."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Look at the way to it, use up its approvals, and move the document."""
        assert isinstance(node.op, Gate)
        document = document_of(turn.state)
        transition = index_of(turn.routes).transitions[node.op.transition]
        if document.refused is not None:
            pass_through(turn, token, node, REJECT)
            return
        if has_void(turn, node.id):
            pass_through(turn, token, node, AGAIN)
            return
        if document.status not in transition.sources:
            legal = ", ".join(map(repr, transition.sources))
            told = f"{transition.name!r} leads on from {legal}, and the document is {document.status!r}"
            self.fail(turn, token, node, told)
            return
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
        pass_through(turn, token, node, PASS)


class PolicyGateKind(Kind):
    """Asks whether an action may be done."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask; without a way for those who may not the step has failed."""
        assert isinstance(node.op, PolicyGate)
        if node.op.of and node.op.of != index_of(turn.routes).spec.entity_type:
            pass_through(turn, token, node, OK)
            return
        action = index_of(turn.routes).actions[node.op.action]
        actor = acting(turn, node.run_as)
        judgement = judged(index_of(turn.routes), action.name, actor, asked_of(turn, actor), is_lent=bool(node.run_as))
        if actor.may(action.capability) and not judgement.objection:
            pass_through(turn, token, node, OK, output={POLICY: judgement.policy} if judgement.policy else None)
        elif turn.routes.ways(node.id, DENIED):
            pass_through(turn, token, node, DENIED)
        else:
            why = judgement.objection or f"that needs the capability {action.capability!r}"
            told = f"{actor.id!r} may not do {action.name!r}: {why}"
            self.fail(turn, token, node, told)
