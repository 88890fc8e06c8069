"""A rule node judges a document by flat rules.

Entered when: a token arrives. May do: set fields of the document where that may be edited, by the organisation's rules about edits. Left when: at once, by the word that a rule has for it, by `blocked`, or by
`ok`; where no edge leads on from `blocked`, the document leaves the slot as if somebody had rejected it; a rule that cannot be judged, or that sets a field elsewhere, is
a failure of the step. On compensation: nothing to undo.
"""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.graph.model import BLOCKED, OK, Node, RuleOp
from standfast.machine.documents.mutations import Author, MutationDraft, change, drafted
from standfast.machine.documents.rules import follow, judge
from standfast.machine.flow.action_inputs import acting
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import pass_through
from standfast.machine.flow.slots import block_slot, can_leave_slot
from standfast.machine.model.queries.edit_windows import document_of, window_of
from standfast.machine.model.state import Token


class RuleKind(Kind):
    """Judges a document."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Judge it; what rules set is a change by the workflow."""
        assert isinstance(node.op, RuleOp)
        document, actor = document_of(turn.state), acting(turn, node.run_as)
        try:
            judged = judge(turn, document.data, node.op.rules, actor=actor)
        except ExpressionError as error:
            self.fail(turn, token, node, f"{node.id!r} cannot judge: {error}")
            return
        if judged.blocked and not turn.routes.ways(node.id, BLOCKED) and can_leave_slot(turn, node.id):
            block_slot(turn, token, node, BLOCKED, by=actor.id, reason=judged.blocked)
            return
        if judged.blocked:
            pass_through(turn, token, node, BLOCKED)
            return
        if judged.data == document.data:
            pass_through(turn, token, node, judged.outcome or OK)
            return
        author = Author(actor, ["update"], run_as=node.run_as or "actor", step=turn.next_step, token=token.id)
        draft = drafted(turn, document.data, judged.data, author)
        if not isinstance(draft, MutationDraft):
            self.fail(turn, token, node, draft.message)
            return
        window = window_of(turn.routes, turn.state).window
        if draft.changes and window != "editable":  # Others decide about the content, or have.
            told = f"{node.id!r} sets {', '.join(map(repr, draft.changes))} while the document is {window.replace('_', ' ')}"
            self.fail(turn, token, node, f"{told}; put it into a slot where that is editable")
            return
        if draft.changes:
            change(turn, draft, "rule", author)
            follow(turn, "rule", draft.rules, before=draft.held, actor=actor)
        pass_through(turn, token, node, judged.outcome or OK)
