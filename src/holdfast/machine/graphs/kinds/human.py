"""A human step asks a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import name_findings, plain_findings, word_findings
from holdfast.machine.graphs.kinds.kind import ERROR, TIMEOUT, Execution, Formula, NodeOp, Plain, Shape, Stored

CONFIRMED, REJECTED = "confirmed", "rejected"
"""Answers that need no edge: the way of a confirmed question may end there, and for a rejected one the policies say what follows."""

OnReject = Literal["abort", "fail"]
"""What follows a rejection that no edge leads on from: the run ends at once, or the step has failed."""
REFUSALS: tuple[OnReject, ...] = get_args(OnReject)

TEMPLATE = "template"
SHOWN = "shows."
"""What the names of the expressions begin with that a question shows."""

_RESERVED = frozenset({ERROR, TIMEOUT, "*"})


class Human(NodeOp, frozen=True, kw_only=True, tag="human"):
    """Asks a person: left by the outcome that the person names."""

    outcomes: tuple[str, ...] = (CONFIRMED, REJECTED)
    """The answers that a person can give, in the order in which they are offered."""
    form: dict[str, Plain] | None = None
    """What a person is asked to give with the answer, as whoever shows the question understands it; the machine does not read it."""
    subject: str = ""
    """The question, as its author wrote it; empty means the name of the node."""
    template: Stored | None = None
    """The stored form of the subject where it has holes, which are filled in from the data when the question is asked."""
    shows: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets one of its own
    """What the person sees of the data: stored mapping expressions, by the names under which their values are shown."""
    role: str = ""
    """Who may answer: those who have this role. Empty means anybody who has the capability of the node."""
    lays_over: bool = False
    """Whether what is given with an answer is laid over the data, name by name; otherwise the whole answer is found under the name of the node."""
    signs: dict[str, str] = {}  # noqa: RUF012 - every struct gets one of its own
    """Where the data takes who answered, if answers are laid over it: for an outcome, a name. What the answer itself gives by this name stands."""
    on_reject: OnReject | None = None
    """What follows a rejection that no edge leads on from; None means what the policies say."""

    word: ClassVar[str] = "human"
    shape: ClassVar[Shape] = Shape(('[/"', '"/]'), "shape=parallelogram, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """What a person may answer; nobody did in time, which is a failure where no edge leads on from it; or the question could not be put."""
        return frozenset({*self.outcomes, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """What a person may answer."""
        return self.outcomes

    @property
    def required(self) -> tuple[str, ...]:
        """All but the two answers that need no edge."""
        return tuple(each for each in self.outcomes if each not in {CONFIRMED, REJECTED})

    @property
    def detail(self) -> str:
        """The question, and who is asked."""
        return ", ".join(each for each in (self.subject, self.role) if each)

    def formulas(self, node: str) -> Iterator[Formula]:
        """The subject with its holes, and what is shown."""
        if self.template is not None:
            yield Formula(TEMPLATE, f"the subject of {node!r}", self.template)
        for shown, stored in self.shows.items():
            yield Formula(f"{SHOWN}{shown}", f"{shown!r}, which {node!r} shows,", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the answers, with the form, and with what follows a rejection."""
        if not self.outcomes:
            yield Diagnostic("outcomes", f"{node!r} lets nobody answer; name at least one outcome", node)
        for outcome, count in Counter(self.outcomes).items():
            yield from name_findings(node, "outcomes", f"an outcome of {node!r}", outcome)
            if count > 1:
                yield Diagnostic(
                    "outcomes", f"{node!r} names the outcome {outcome!r} {count} times; name it once", node
                )
            if outcome in _RESERVED:
                message = f"{node!r} names the outcome {outcome!r}, which is kept for the engine; take another word"
                yield Diagnostic("outcomes", message, node)
        if self.form is not None:
            yield from plain_findings(node, "form", self.form)
        if self.on_reject is not None:
            what = f"what follows a rejection of {node!r}"
            yield from word_findings(node, "on_reject", what, self.on_reject, words=REFUSALS)
