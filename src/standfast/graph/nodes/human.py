"""A human step asks a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import (
    ERROR,
    TIMEOUT,
    Execution,
    NodeExpression,
    NodeOp,
    NodeShape,
    Plain,
    Stored,
)
from standfast.graph.values.approver_rules import (
    AGREES,
    CHAIN,
    HEAVIEST,
    PICKS,
    ROLE,
    RULE,
    Agree,
    Ask,
    Vote,
    agreement_in_words,
)
from standfast.graph.values.forms import form_findings
from standfast.graph.values.task_times import TaskTimes
from standfast.graph.values.value_checks import (
    listed,
    name_findings,
    number_findings,
    plain_findings,
    word_findings,
)

CONFIRMED, REJECTED = "confirmed", "rejected"
"""Answers that need no edge: the way of a confirmed question may end there, and for a rejected one the policies say what follows."""

WITHDRAWN = "withdrawn"
"""What a question is left by that was taken back; where no edge leads on from it, that is a rejection."""
ABSTAINED = "abstained"

OnReject = Literal["abort", "fail"]
"""What follows a rejection that no edge leads on from: the run ends at once, or the step has failed."""
REFUSALS: tuple[OnReject, ...] = get_args(OnReject)

TEMPLATE = "template"
SHOWN = "shows."
"""What the names of the expressions begin with that a question shows."""

RULED = "asks."
"""What the names of the expressions begin with that yield those who are asked."""
MOST_ASKS = 100

_RESERVED = frozenset({ERROR, TIMEOUT, WITHDRAWN, "*"})


class HumanOp(NodeOp, frozen=True, kw_only=True, tag="human"):
    """Asks a person: left by the outcome that the person names."""

    outcomes: tuple[str, ...] = (CONFIRMED, REJECTED)
    """The answers that a person can give, in the order in which they are offered."""
    form: dict[str, Plain] | None = None
    """What a person has to give with the answer, as JSON Schema."""
    form_for: tuple[str, ...] = ()
    """The outcomes that the form must be filled in for; none given means all but a rejection and an abstention."""
    subject: str = ""
    """The question, as its author wrote it; empty means the name of the node."""
    template: Stored | None = None
    """The stored form of the subject where it has holes, which are filled in from the data when the question is asked."""
    shows: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets one of its own
    """What the person sees of the data: stored mapping expressions, by the names under which their values are shown."""
    role: str = ""
    """Who may answer: those who have this role; the short way of asking one role. Without this, asks and a chain anybody is asked who has
    the capability of the node."""
    asks: tuple[Ask, ...] = ()
    """Who is asked."""
    chain: str = ""
    """Name of an approval chain that says who is asked, stage by stage."""
    agree: Agree | None = None
    """How many of them have to be for it; None means all of a list, and any of one role or resolver. A list of roles alone means any without
    it, as it did when graphs of such lists were stored without a rule; `agreement_of_list` writes it into new ones."""
    least: int = 0
    """How many, or how much weight, where that is what has to be agreed."""
    approves: str = ""
    """The outcome that counts for it; empty means the first one that is neither of the following."""
    rejects: str = REJECTED
    """The outcome that counts against it."""
    abstains: str = ABSTAINED
    """The outcome that counts as answered, and neither for it nor against it. Every other one ends the question at once."""
    requires_reason: bool = False
    """Whether a rejection needs a comment."""
    self_approval: bool = True
    """Whether whoever wanted the run may decide too."""
    distinct_from: tuple[str, ...] = ()
    """Human steps whose deciders may not decide this one."""
    distinct_approvers: bool = False
    """Whether nobody may decide who has decided another human step of the run, or an earlier stage of this one; and nobody decides this one twice."""
    delegable: bool = True
    """Whether those who are asked can have others decide in their place."""
    lays_over: bool = False
    """Whether what is given with an answer is laid over the data, name by name; otherwise the whole answer is found under the name of the node."""
    signs: dict[str, str] = {}  # noqa: RUF012 - every struct gets one of its own
    """Where the data takes who answered, if answers are laid over it: for an outcome, a name. What the answer itself gives by this name stands."""
    on_reject: OnReject | None = None
    """What follows a rejection that no edge leads on from; None means what the policies say."""
    times: TaskTimes | None = None
    """When it is due, when people are reminded, and what becomes of it if nobody answers."""
    last_resort: str = ""
    """The role that is asked besides, once, when the time is over and the run escalates; the time then begins anew."""
    channels: tuple[str, ...] = ()
    """How those who are asked are told that they are; none given means that they look for themselves."""
    pins: bool = False
    """Whether it is an approval of a document: asked for the version that the document has, decided by who names that version, and used up by
    the gate behind its slot."""
    covers: tuple[str, ...] = ()
    """Fields that such an approval is about: a change of others leaves it as it is; none given means all."""

    word: ClassVar[str] = "human"
    shape: ClassVar[NodeShape] = NodeShape(('[/"', '"/]'), "shape=parallelogram, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """What a person may answer, or several come to; it was taken back, nobody answered in time, or it could not be put."""
        return frozenset({*self.outcomes, self.rejects, WITHDRAWN, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """What a person may answer."""
        return self.outcomes

    @property
    def required(self) -> tuple[str, ...]:
        """All but the answers that need no edge, and an abstention, which leads nowhere."""
        free = {CONFIRMED, REJECTED, self.rejects, self.abstains}
        return tuple(each for each in self.outcomes if each not in free)

    @property
    def all_asks(self) -> tuple[Ask, ...]:
        """Who is asked, a single role included; empty for a chain, and where anybody is."""
        return self.asks or ((Ask(by=ROLE, of=self.role),) if self.role else ())

    @property
    def is_settled(self) -> bool:
        """Whether the definition alone says who is asked, so that nothing has to be found out when the question is put."""
        is_free = self.self_approval and not self.distinct_from and not self.distinct_approvers
        return is_free and not self.chain and all(ask.is_direct for ask in self.asks)

    @property
    def agreement(self) -> Agree:
        """How many have to be for it."""
        if self.agree is not None:
            return self.agree
        return "all" if len(self.asks) > 1 and any(ask.by != ROLE for ask in self.asks) else "any"

    @property
    def approval(self) -> str:
        """The outcome that counts for it, and that stands for yes."""
        against = {self.rejects, self.abstains}
        return self.approves or next((each for each in self.outcomes if each not in against), CONFIRMED)

    def outcome_for(self, vote: Vote) -> str:
        """The word of a vote, which need not be one of the answers."""
        if vote == "for":
            return self.approval
        return self.rejects if vote == "against" else self.abstains

    @property
    def detail(self) -> str:
        """The question, and who is asked."""
        asked = (self.role, *(ask.words for ask in self.asks), self.chain)
        rule = agreement_in_words(self.agreement, self.least) if len(self.asks) > 1 else ""
        return ", ".join(each for each in (self.subject, *asked, rule) if each)

    def needs_form(self, outcome: str) -> bool:
        """Whether the form must be filled in for an outcome."""
        if self.form is None:
            return False
        return outcome in self.form_for if self.form_for else outcome not in {self.rejects, self.abstains}

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The subject with its holes, and what is shown."""
        if self.template is not None:
            yield NodeExpression(TEMPLATE, f"the subject of {node!r}", self.template)
        for shown, stored in self.shows.items():
            yield NodeExpression(f"{SHOWN}{shown}", f"{shown!r}, which {node!r} shows,", stored)
        for place, ask in enumerate(self.asks):
            if ask.rule is not None:
                yield NodeExpression(
                    f"{RULED}{place}", f"the rule {ask.of!r}, which says whom {node!r} asks,", ask.rule
                )

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
        for covered in self.covers:
            yield from name_findings(node, "covers", f"a field that {node!r} covers", covered)
        if self.covers and not self.pins:
            yield Diagnostic(
                "covers", f"{node!r} covers fields, and pins no version; set `pins`, or drop `covers`", node
            )
        yield from self._asking(node)
        yield from self._agreeing(node)

    def _form_findings(self, node: str) -> Iterator[Diagnostic]:
        if self.form is not None:
            yield from list(plain_findings(node, "form", self.form)) or form_findings(node, self.form)
        elif self.form_for:
            yield Diagnostic("form", f"{node!r} says for which outcomes it has a form, and has none; give one", node)
        for outcome in sorted(set(self.form_for) - set(self.outcomes)):
            message = f"the form of {node!r} is for the outcome {outcome!r}; there are {listed(self.outcomes)}"
            yield Diagnostic("form", message, node)

    def _asking(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with those who are asked."""
        given = [name for name, value in (("role", self.role), ("asks", self.asks), ("chain", self.chain)) if value]
        if len(given) > 1:
            told = f"{node!r} says by {listed(given)} who is asked; give one of them"
            yield Diagnostic("asks", told, node)
        is_telling = self.channels or (self.times is not None and self.times.reminds)
        if is_telling and not self.all_asks and not self.chain:
            message = f"{node!r} tells or reminds those who are asked, and asks nobody in particular; say by role, asks or chain who is asked"
            yield Diagnostic("asks", message, node)
        if len(self.asks) > MOST_ASKS:
            message = f"{node!r} asks {len(self.asks)} people or roles; ask at most {MOST_ASKS}, or one role"
            yield Diagnostic("asks", message, node)
        for name in filter(None, (self.role, self.chain)):
            yield from name_findings(node, "asks", f"whom {node!r} asks", name)
        for words, count in Counter(each.words for each in self.asks).items():
            if count > 1:
                yield Diagnostic("asks", f"{node!r} asks {words!r} {count} times; ask once", node)
        for ask in self.asks:
            yield from _ask_findings(node, ask)
        if self.distinct_from and node in self.distinct_from:
            yield Diagnostic("distinct_from", f"{node!r} is to be distinct from itself; name other steps", node)

    def _agreeing(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with what has to be agreed."""
        agree = self.agreement
        yield from word_findings(node, "agree", f"what {node!r} needs agreement of", agree, words=AGREES)
        if agree in {"n", "weight"}:
            yield from self._reachable(node, agree)
        elif self.least:
            message = f"{node!r} needs {self.least}, which {agree!r} has no use for; ask for 'n' or 'weight'"
            yield Diagnostic("agree", message, node)
        if self.chain and self.agree is not None:
            yield Diagnostic(
                "agree", f"{node!r} has a chain, whose stages say what has to be agreed; drop `agree`", node
            )
        elif agree != "any" and not self.all_asks:
            yield Diagnostic(
                "agree", f"{node!r} asks nobody in particular, so {agree!r} has no meaning; ask people", node
            )
        if self.approves and self.approves not in self.outcomes:
            message = (
                f"{self.approves!r} counts for {node!r}, which has only {listed(self.outcomes)}; name one of these"
            )
            yield Diagnostic("outcomes", message, node)
        if len({self.approval, self.rejects, self.abstains}) < len(("for", "against", "neither")):
            message = (
                f"one outcome of {node!r} counts both for it and against it, or as an abstention; take different words"
            )
            yield Diagnostic("outcomes", message, node)

    def _reachable(self, node: str, agree: Agree) -> Iterator[Diagnostic]:
        """Whether as many can be for it as have to be."""
        most = self._most(agree)
        if type(self.least) is int and self.least > most and any(ask.by == ROLE for ask in self.all_asks):
            told = f"{node!r} needs {self.least}, and those whom it asks come to {most}: all who have a role share one place"
            yield Diagnostic("agree", f"{told}; have each of them asked, by `pick` 'all', or ask for less", node)
        else:
            yield from number_findings(node, "agree", f"what {node!r} needs", self.least, low=1, high=most)

    def _most(self, agree: Agree) -> int:
        """The most that can ever be reached, if the definition alone tells."""
        if not self.all_asks or not all(ask.is_direct for ask in self.all_asks):
            return HEAVIEST
        return max(1, sum(ask.weight if agree == "weight" else 1 for ask in self.all_asks))


def _ask_findings(node: str, ask: Ask) -> Iterator[Diagnostic]:
    """What is wrong with one part of a question."""
    what = f"whom {node!r} asks"
    yield from name_findings(node, "asks", f"the resolver that says {what}", ask.by)
    if ask.of and ask.by != RULE:
        yield from name_findings(node, "asks", what, ask.of)
    if ask.by in {"user", ROLE} and not ask.of:
        yield Diagnostic("asks", f"{node!r} asks {ask.by!r} and does not say which; write '{ask.by}:<name>'", node)
    if ask.by == RULE and ask.rule is None:
        yield Diagnostic("asks", f"{node!r} asks by a rule that has no stored expression; give one", node)
    if ask.by == CHAIN:
        yield Diagnostic("asks", f"{node!r} asks a chain among others; a chain stands alone: give it as `chain`", node)
    yield from word_findings(node, "asks", f"how {what} is picked", ask.pick, words=PICKS)
    yield from number_findings(node, "asks", f"the weight of {what}", ask.weight, low=1, high=HEAVIEST)
