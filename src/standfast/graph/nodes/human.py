"""Human tasks."""

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
"""Outcomes without a required edge: a confirmed task may end its path, and the policies handle a rejection."""

WITHDRAWN = "withdrawn"
"""Outcome of a withdrawn task. Without an edge it counts as a rejection."""
ABSTAINED = "abstained"

OnReject = Literal["abort", "fail"]
"""Effect of a rejection without an edge: `abort` ends the run, `fail` fails the step."""
REFUSALS: tuple[OnReject, ...] = get_args(OnReject)

TEMPLATE = "template"
SHOWN = "shows."
"""Prefix of the expressions for shown data."""

RULED = "asks."
"""Prefix of the expressions that select approvers."""
MOST_ASKS = 100

_RESERVED = frozenset({ERROR, TIMEOUT, WITHDRAWN, "*"})


class HumanOp(NodeOp, frozen=True, kw_only=True, tag="human"):
    """Asks people for a decision. The outcome is the one they choose."""

    outcomes: tuple[str, ...] = (CONFIRMED, REJECTED)
    """The possible answers, in display order."""
    form: dict[str, Plain] | None = None
    """JSON Schema of the form for the answer."""
    form_for: tuple[str, ...] = ()
    """Outcomes that require the form. Empty means all but a rejection and an abstention."""
    subject: str = ""
    """The question as written by the author. Empty means the node's name."""
    template: Stored | None = None
    """Stored template of the subject, filled in from the data when the task is opened. None without placeholders."""
    shows: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets its own copy
    """Data shown to approvers: stored expressions by display name."""
    role: str = ""
    """Role whose holders may answer, as the short form of one role. Without role, `asks` and `chain`, all actors
    with the node's capability may answer."""
    asks: tuple[Ask, ...] = ()
    """The approvers."""
    chain: str = ""
    """Name of an approval chain, which determines the approvers stage by stage."""
    agree: Agree | None = None
    """Required agreement. None means all of a list, and any of one role or resolver. For a list of roles alone None
    means any, as in graphs stored before the rule existed; `agreement_of_list` writes it into new ones."""
    least: int = 0
    """Required number or weight, for `n` and `weight`."""
    approves: str = ""
    """Outcome that counts as approval. Empty means the first one that is neither of the following."""
    rejects: str = REJECTED
    """Outcome that counts as rejection."""
    abstains: str = ABSTAINED
    """Outcome that counts as abstention. Any other outcome ends the task immediately."""
    requires_reason: bool = False
    """Whether a rejection requires a comment."""
    self_approval: bool = True
    """Whether the requester of the run may decide."""
    distinct_from: tuple[str, ...] = ()
    """Human steps whose deciders may not decide this one."""
    distinct_approvers: bool = False
    """Whether deciders of other human steps, or of earlier stages, are excluded, and each person decides once."""
    delegable: bool = True
    """Whether approvers may delegate the task."""
    lays_over: bool = False
    """Whether the content of an answer is merged into the data. Otherwise the whole answer is stored under the
    node's name."""
    signs: dict[str, str] = {}  # noqa: RUF012 - every struct gets its own copy
    """For merged answers: the name that receives the decider, by outcome. A value of this name in the answer takes
    precedence."""
    on_reject: OnReject | None = None
    """Effect of a rejection without an edge. None means that of the policies."""
    times: TaskTimes | None = None
    """Due date, reminders and escalation."""
    last_resort: str = ""
    """Role that is asked in addition, once, when the task expires and escalates. Its time then starts again."""
    channels: tuple[str, ...] = ()
    """Channels to notify the approvers. Empty sends no notification."""
    pins: bool = False
    """Whether it approves a document: for the current version, by deciders who name it. The gate after its slot
    consumes the approval."""
    covers: tuple[str, ...] = ()
    """Fields that the approval covers. Changes of other fields keep it valid. Empty means all."""

    word: ClassVar[str] = "human"
    shape: ClassVar[NodeShape] = NodeShape(('[/"', '"/]'), "shape=parallelogram, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Waits for a person."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The possible answers or the combined result; withdrawn, expired, or failed."""
        return frozenset({*self.outcomes, self.rejects, WITHDRAWN, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """The possible answers."""
        return self.outcomes

    @property
    def required(self) -> tuple[str, ...]:
        """All answers but those without a required edge and an abstention, which has none."""
        free = {CONFIRMED, REJECTED, self.rejects, self.abstains}
        return tuple(each for each in self.outcomes if each not in free)

    @property
    def all_asks(self) -> tuple[Ask, ...]:
        """The approvers including a single role. Empty for a chain, and if any actor may answer."""
        return self.asks or ((Ask(by=ROLE, of=self.role),) if self.role else ())

    @property
    def is_settled(self) -> bool:
        """Whether the definition alone determines the approvers, without a lookup."""
        is_free = self.self_approval and not self.distinct_from and not self.distinct_approvers
        return is_free and not self.chain and all(ask.is_direct for ask in self.asks)

    @property
    def agreement(self) -> Agree:
        """The required agreement."""
        if self.agree is not None:
            return self.agree
        return "all" if len(self.asks) > 1 and any(ask.by != ROLE for ask in self.asks) else "any"

    @property
    def approval(self) -> str:
        """The outcome that counts as approval."""
        against = {self.rejects, self.abstains}
        return self.approves or next((each for each in self.outcomes if each not in against), CONFIRMED)

    def outcome_for(self, vote: Vote) -> str:
        """Return the outcome of a vote, which need not be one of the answers."""
        if vote == "for":
            return self.approval
        return self.rejects if vote == "against" else self.abstains

    @property
    def detail(self) -> str:
        """The question and the approvers."""
        asked = (self.role, *(ask.words for ask in self.asks), self.chain)
        rule = agreement_in_words(self.agreement, self.least) if len(self.asks) > 1 else ""
        return ", ".join(each for each in (self.subject, *asked, rule) if each)

    def needs_form(self, outcome: str) -> bool:
        """Return whether an outcome requires the form."""
        if self.form is None:
            return False
        return outcome in self.form_for if self.form_for else outcome not in {self.rejects, self.abstains}

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the subject's template, the shown data and the rules."""
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
        """Yield the findings of answers, form and rejection."""
        if not self.outcomes:
            yield Diagnostic("outcomes", f"{node!r} has no outcomes; name at least one", node)
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
        """Yield the findings of the approvers."""
        given = [name for name, value in (("role", self.role), ("asks", self.asks), ("chain", self.chain)) if value]
        if len(given) > 1:
            told = f"{node!r} says by {listed(given)} who is asked; give one of them"
            yield Diagnostic("asks", told, node)
        is_telling = self.channels or (self.times is not None and self.times.reminds)
        if is_telling and not self.all_asks and not self.chain:
            message = f"{node!r} tells or reminds those who are asked, and names no approvers; name them by role, asks or chain"
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
        """Yield the findings of the required agreement."""
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
            yield Diagnostic("agree", f"{node!r} names no approvers, so {agree!r} has no meaning; name approvers", node)
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
        """Yield a finding if the required agreement cannot be reached."""
        most = self._most(agree)
        if type(self.least) is int and self.least > most and any(ask.by == ROLE for ask in self.all_asks):
            told = f"{node!r} needs {self.least}, and those whom it asks come to {most}: all who have a role share one place"
            yield Diagnostic("agree", f"{told}; have each of them asked, by `pick` 'all', or ask for less", node)
        else:
            yield from number_findings(node, "agree", f"what {node!r} needs", self.least, low=1, high=most)

    def _most(self, agree: Agree) -> int:
        """Return the highest reachable number or weight, if the definition alone determines it."""
        if not self.all_asks or not all(ask.is_direct for ask in self.all_asks):
            return HEAVIEST
        return max(1, sum(ask.weight if agree == "weight" else 1 for ask in self.all_asks))


def _ask_findings(node: str, ask: Ask) -> Iterator[Diagnostic]:
    """Yield the findings of one part of the assignment."""
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
