"""A human step asks a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import listed, name_findings, plain_findings, word_findings
from holdfast.machine.graphs.forms import form_findings
from holdfast.machine.graphs.kinds.kind import ERROR, TIMEOUT, Execution, Formula, NodeOp, Plain, Shape, Stored
from holdfast.machine.graphs.times import Times

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
    """What a person has to give with the answer, as JSON Schema."""
    form_for: tuple[str, ...] = ()
    """The outcomes that the form must be filled in for; none given means all but the rejection."""
    subject: str = ""
    """The question, as its author wrote it; empty means the name of the node."""
    template: Stored | None = None
    """The stored form of the subject where it has holes, which are filled in from the data when the question is asked."""
    shows: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets one of its own
    """What the person sees of the data: stored mapping expressions, by the names under which their values are shown."""
    role: str = ""
    """Who may answer: those who have this role. Empty means anybody who has the capability of the node."""
    on_reject: OnReject | None = None
    """What follows a rejection that no edge leads on from; None means what the policies say."""
    times: Times | None = None
    """When it is due, when people are reminded, and what becomes of it if nobody answers."""
    last_resort: str = ""
    """The role that is asked besides, once, when the time is over and the run escalates; the time then begins anew."""
    channels: tuple[str, ...] = ()
    """How those who are asked are told that they are; none given means that they look for themselves."""

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
    def approval(self) -> str:
        """The answer that stands for yes: `confirmed`, or else the first one that is not a rejection."""
        others = [each for each in self.outcomes if each != REJECTED]
        return CONFIRMED if CONFIRMED in others or not others else others[0]

    @property
    def required(self) -> tuple[str, ...]:
        """All but the two answers that need no edge."""
        return tuple(each for each in self.outcomes if each not in {CONFIRMED, REJECTED})

    @property
    def detail(self) -> str:
        """The question, and who is asked."""
        return ", ".join(each for each in (self.subject, self.role) if each)

    def needs_form(self, outcome: str) -> bool:
        """Whether the form must be filled in for an outcome."""
        if self.form is None:
            return False
        return outcome in self.form_for if self.form_for else outcome != REJECTED

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
        yield from self._form_findings(node)
        if self.times is not None:
            yield from self.times.findings(node, self.outcomes)
        for channel in self.channels:
            yield from name_findings(node, "channel", f"a channel of {node!r}", channel)
        if self.on_reject is not None:
            what = f"what follows a rejection of {node!r}"
            yield from word_findings(node, "on_reject", what, self.on_reject, words=REFUSALS)

    def _form_findings(self, node: str) -> Iterator[Diagnostic]:
        if self.form is not None:
            yield from list(plain_findings(node, "form", self.form)) or form_findings(node, self.form)
        elif self.form_for:
            yield Diagnostic("form", f"{node!r} says for which outcomes it has a form, and has none; give one", node)
        for outcome in sorted(set(self.form_for) - set(self.outcomes)):
            message = f"the form of {node!r} is for the outcome {outcome!r}; there are {listed(self.outcomes)}"
            yield Diagnostic("form", message, node)
