"""A document and the people around it, without a database: what they ask is decided, and what happened is folded again each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from machine.comparing import History
from machine.hosting import Host
from standfast.graph.model import DocumentRule, Graph
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Answer, Decision, Ignored, Rejection
from standfast.kernel.row_kinds.documents import AuditMade, DocumentOpened, MutationMade, VersionKept
from standfast.kernel.row_kinds.tasks import DecisionGiven
from standfast.kernel.rows import Record
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import (
    CreateDocument,
    Mutate,
    RequestTransition,
    SupersedeDocument,
)
from standfast.machine.model.document_state import Document
from standfast.machine.model.queries.edit_windows import window_of
from standfast.machine.model.state import StepState

R = TypeVar("R", bound=Record)

ANN, BOB, CARL = (Actor(id=name) for name in ("ann", "bob", "carl"))
GIVEN: dict[str, object] = {"vendor": "acme", "total": 500}


class Case:
    """One document, from its creation on."""

    def __init__(self, graph: Graph, *, amends: str = "", **given: object) -> None:
        self.host = Host(graph)
        self.host.key = "INV-1"
        self._history = History(self.host)
        self.created = self.tell(CreateDocument(data={**GIVEN, **given}, amended_from=amends), BOB)

    def tell(
        self,
        command: c.Command,
        actor: Actor = BOB,
        *,
        effect: int | None = None,
        rules: Sequence[DocumentRule] = (),
    ) -> Answer:
        """Decide a command under the rules of an organisation; what happened must fold to the same state, and a refusal must change nothing."""
        self.host.rules = list(rules)
        before = msgspec.to_builtins(self.host.state)
        answer = self.host.tell(command, actor, effect=effect)
        if isinstance(answer, Decision):
            assert self._history.problems() == []
        else:
            assert msgspec.to_builtins(self.host.state) == before
        return answer

    def edit(self, actor: Actor = BOB, *, expected: int | None = None, **fields: object) -> str:
        """Edit fields; the code of the refusal, if there is one."""
        return self.code(self.tell(Mutate(payload=fields, expected_version=expected), actor))

    def ask(self, transition: str, actor: Actor = BOB, reason: str = "") -> str:
        """Ask for a transition; the code of the refusal, if there is one."""
        return self.code(self.tell(RequestTransition(transition=transition, reason=reason), actor))

    def supersede(self, by: str = "INV-2") -> str:
        """Have another document take its place."""
        return self.code(self.tell(SupersedeDocument(superseded_by=by)))

    def decide(self, node: str, actor: Actor, outcome: str = "approved", *, version: str | None = None) -> str:
        """Decide an open question, on the version that it asks about unless another is named."""
        step = self.step(node)
        seen = str(self.document.approvals[step.number].version) if version is None else version
        told = c.AnswerStep(step=step.number, outcome=outcome, document_version=seen, comment="because")
        return self.code(self.tell(told, actor))

    @staticmethod
    def code(answer: Answer) -> str:
        """Why something was refused; empty if it was not."""
        if isinstance(answer, Rejection):
            assert len(answer.message) > 20, answer
            return answer.code
        return "ignored" if isinstance(answer, Ignored) else ""

    def step(self, node: str) -> StepState:
        """The open step of a node."""
        return next(step for step in self.host.state.open.values() if step.node == node)

    @property
    def document(self) -> Document:
        """The document as it stands."""
        assert self.host.state.document is not None
        return self.host.state.document

    @property
    def at(self) -> list[str]:
        """The nodes whose steps are open."""
        return [step.node for step in self.host.state.open.values()]

    @property
    def window(self) -> str:
        """How it may be edited."""
        return window_of(self.host.machine.routes, self.host.state).window

    def rows(self, kind: type[R]) -> list[R]:
        """Its rows of a kind."""
        return [row for row in self.host.rows if isinstance(row, kind)]

    @property
    def row(self) -> DocumentOpened:
        """Its own row."""
        (found,) = self.rows(DocumentOpened)
        return found

    @property
    def versions(self) -> list[VersionKept]:
        """The versions that are kept."""
        return self.rows(VersionKept)

    @property
    def mutations(self) -> list[MutationMade]:
        """What was done to it."""
        return self.rows(MutationMade)

    @property
    def audit(self) -> list[AuditMade]:
        """Who did what."""
        return self.rows(AuditMade)

    @property
    def applied(self) -> list[bool | None]:
        """For each decision, whether a gate used it up."""
        rows = sorted(self.rows(DecisionGiven), key=lambda row: (row.number, row.sequence))
        return [row.applied for row in rows]

    def call(self, output: object = None) -> Answer:
        """The handler of the step that calls one comes back."""
        effect, call = next(iter(self.host.calls.items()))
        return self.tell(c.CompleteStep(step=call.body.step, output=output), SYSTEM, effect=effect)
