"""An action changes the document, or another one, in the name of the workflow.

Entered when: a token arrives. May do: change the document; one with a handler has that compute the changes, inside the commit. Left when: the document is
changed (`ok`), or it cannot be (`error`, if there is such an edge). What is done to another document is done by the engine itself, in the commit that ends
the step. On compensation: the action that takes it back is done, if it has any; a change is undone by another one, never taken back.
"""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.graph.model import ActionOp, Node
from standfast.kernel.decision import Rejection
from standfast.machine.documents.mutations import Author, MutationDraft, change, drafted, invalid, ruled
from standfast.machine.documents.policies import allowed_both, is_denied, step_refusal
from standfast.machine.documents.rules import follow, rules_for
from standfast.machine.flow.action_inputs import acting, target_of
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import take_answer
from standfast.machine.flow.rollback import undone
from standfast.machine.flow.routing import pass_through
from standfast.machine.model.document_state import ALL_FIELDS
from standfast.machine.model.json_values import plain
from standfast.machine.model.queries.edit_windows import document_of, index_of, is_behind_gate, window_of
from standfast.machine.model.queries.fields import not_given
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import Data, StepState, Token
from standfast.machine.nodes.task import TaskKind


class ActionKind(TaskKind):
    """Changes the document."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """Change it, or have a handler called that says how. What it is given must be there and fit."""
        assert isinstance(node.op, ActionOp)
        try:
            payload = given(turn, token, node)
            if node.op.of:
                target_of(turn, turn.data_for(token, node.id), node.id)
        except ExpressionError as error:
            self.fail(turn, token, node, f"what {node.id!r} is given cannot be told: {error}")
            return
        if node.op.of:
            super().enter(turn, token, node)
            return
        form = index_of(turn.routes).payload(node.op.action)
        wrong = (
            invalid(f"what {node.id!r} is given", [] if form is None else form.faults(payload))
            or _closed(turn, node)
            or step_refusal(turn, node)
            or (_ruled_out(turn, node) if node.op.work is not None else None)
        )
        if wrong is not None:
            self.fail(turn, token, node, wrong.message)
        elif node.op.work is not None:
            super().enter(turn, token, node)
        else:
            author = _author(turn, node, turn.next_step, node.op.action, token=token.id)
            draft = _drafted(turn, node, payload, author)
            if isinstance(draft, MutationDraft):
                output = _done(turn, draft, author)
                pass_through(turn, token, node, output=output)
            else:
                self.fail(turn, token, node, draft.message)

    def may_take_over(self, turn: DecisionBuilder, node: Node) -> bool:
        """Whether the actor may do what the step is denied. The engine takes nothing over."""
        actor = turn.moment.actor
        if actor.kind == "system" or not is_denied(turn, node):
            return False
        assert isinstance(node.op, ActionOp)
        return not allowed_both(turn, node.op, actor, is_lent=False)[1]


def given(turn: DecisionBuilder, token: Token, node: Node) -> Data:
    """What an action is given; ExpressionError if something of it cannot be told."""
    asked = turn.data_for(token, node.id)
    return {name: plain(each.evaluate(asked)) for name, each in turn.routes.payload(node.id).items()}


def completed(turn: DecisionBuilder, step: StepState, output: object) -> Rejection | None:
    """The handler of an action came back with changes; if they do not fit, what it wrote goes with the refusal."""
    node = turn.routes.node(step.node)
    assert isinstance(node.op, ActionOp)
    if node.op.of:
        turn.cancel_step_timer(step)
        take_answer(turn, step, output)
        return None
    author = _author(turn, node, step.number, node.op.action, token=step.token)
    draft = step_refusal(turn, node) or _computed(turn, node, output, author)
    if not isinstance(draft, MutationDraft):
        return draft
    turn.cancel_step_timer(step)
    take_answer(turn, step, _done(turn, draft, author))
    return None


def taken_back(turn: DecisionBuilder, step: StepState, output: object) -> Rejection | None:
    """What takes an action back is done: another change of the document, unless it was another document's."""
    node = turn.routes.node(step.node)
    assert isinstance(node.op, ActionOp)
    if not node.op.of:
        author = _author(turn, node, step.number, node.op.undo, token=step.token)
        draft = _computed(turn, node, output, author)
        if not isinstance(draft, MutationDraft):
            return draft
        _write(turn, draft, author)
    undone(turn, step)
    return None


def _computed(turn: DecisionBuilder, node: Node, output: object, author: Author) -> MutationDraft | Rejection:
    if output is not None and not isinstance(output, dict):
        told = f"the handler of {node.id!r} gives changes by field, or nothing; it gave {output!r:.200}"
        return refused(Refusal.INVALID_DOCUMENT, told)
    return _drafted(turn, node, output or {}, author)


def _closed(turn: DecisionBuilder, node: Node) -> Rejection | None:
    """Why the workflow's own step may not change the document here."""
    assert isinstance(node.op, ActionOp)
    action = index_of(turn.routes).actions[node.op.action]
    view = window_of(turn.routes, turn.state)
    if action.workflow_allowed or view.window == "editable":
        return None
    told = f"{action.name!r} is not allowed to the workflow while the document is {view.window.replace('_', ' ')}"
    return refused(Refusal.WORKFLOW_EDIT_LOCKED, f"{told}; allow it in the contract, or put the step elsewhere")


def _drafted(turn: DecisionBuilder, node: Node, changes: Data, author: Author) -> MutationDraft | Rejection:
    wrong = invalid(f"what {node.id!r} gives", not_given(index_of(turn.routes), changes, is_workflow=True))
    if wrong is not None:
        return wrong
    may_set = window_of(turn.routes, turn.state).window == "editable"
    draft = drafted(turn, document_of(turn.state).data, changes, author, may_set=may_set)
    return _advised(draft) if isinstance(draft, Rejection) else _unapproved(turn, node, draft) or draft


def _ruled_out(turn: DecisionBuilder, node: Node) -> Rejection | None:
    """Why the rules of the organisation let no handler compute anything, as for people."""
    assert isinstance(node.op, ActionOp)
    author, content = _author(turn, node, turn.next_step, node.op.action), document_of(turn.state).data
    judged = ruled(turn, content, rules_for(turn, *author.acts), author, may_set=False)
    return _advised(judged) if isinstance(judged, Rejection) else None


def _advised(refusal: Rejection) -> Rejection:
    if refusal.code != Refusal.RULE_BLOCKED:
        return refusal
    return refused(
        Refusal.RULE_BLOCKED, f"{refusal.message}; change what it objects to, or the rule, and retry the step"
    )


def _unapproved(turn: DecisionBuilder, node: Node, draft: MutationDraft) -> Rejection | None:
    """Why a step does not change what was approved: behind the gate that relied on it nobody would be asked for it again."""
    index, document = index_of(turn.routes), document_of(turn.state)
    content = draft.changes.keys() - index.system
    sealed = {*document.sealed} | (index.covered(()) if ALL_FIELDS in document.sealed else set())
    if is_behind_gate(turn.routes, turn.state) and window_of(turn.routes, turn.state).window != "editable":
        sealed |= index.spec.fields.keys() - index.computed.keys()
    changed = sorted(content & sealed)
    if not changed:
        return None
    told = f"{node.id!r} would change {', '.join(map(repr, changed))}, which was approved as it is"
    instead = "put the step before the gate, or let the contract name what only the workflow writes in `system_fields`"
    return refused(Refusal.WORKFLOW_EDIT_LOCKED, f"{told}; {instead}")


def _author(turn: DecisionBuilder, node: Node, step: int, act: str, *, token: str = "") -> Author:
    return Author(acting(turn, node.run_as), [act], run_as=node.run_as or "actor", step=step, token=token)


def _write(turn: DecisionBuilder, draft: MutationDraft, author: Author) -> None:
    if draft.changes:
        change(turn, draft, author.acts[0], author)
        follow(turn, author.acts[0], draft.rules, before=draft.held, actor=author.actor)


def _done(turn: DecisionBuilder, draft: MutationDraft, author: Author) -> Data:
    """Write the change; the receipt, as the steps behind find it."""
    document = document_of(turn.state)
    before = document.version
    _write(turn, draft, author)
    return {"action": author.acts[0], "version_before": before, "version_after": document.version}
