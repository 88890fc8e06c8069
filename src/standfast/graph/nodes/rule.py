"""A rule node judges a document by flat rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.value_checks import name_findings, word_findings

Effect = Literal["block", "warn", "set_field", "require_field", "outcome", "notify", "webhook"]
Phase = Literal["before", "after"]
AFTERWARDS: frozenset[Effect] = frozenset({"notify", "webhook"})
"""What rules have done once a change is made: they cannot undo it, and nobody waits for what they have sent."""
BLOCKED = "blocked"
WHEN, VALUE = "when.", "value."
"""What the names of the expressions begin with: the condition of a rule, and what it sets a field to."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)
_RESERVED = frozenset({ERROR, "*"})


class DocumentRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A flat rule: judged before a change is made, or by a node; or after it, where it can only have something sent."""

    name: str
    when: Stored | None = None
    """The condition under which it has its effect; None means always."""
    effect: Effect = "block"
    field: str = ""
    """What `set_field` sets and `require_field` requires."""
    value: Stored | None = None
    """What `set_field` sets the field to."""
    reason: str = ""
    """Why, as whoever is blocked or warned reads it."""
    outcome: str = ""
    """What a node is left by, for the effect `outcome`."""
    on: tuple[str, ...] = ()
    """The actions and transitions that it is about; none named means all of them."""
    to: tuple[str, ...] = ()
    """Who is told, for `notify`: users, addresses, `role:<name>`."""
    subject: str = ""
    body: str = ""
    channels: tuple[str, ...] = ()
    url: str = ""
    """Where it is sent, for `webhook`."""
    secret: str = ""
    """Where the secret is found that it is signed with."""
    templates: dict[str, Stored] = {}
    """The texts that have holes: stored templates, by the name of the field."""

    @property
    def phase(self) -> Phase:
        """Whether it is judged before the change, or after it."""
        return "after" if self.effect in AFTERWARDS else "before"


class RuleOp(NodeOp, frozen=True, kw_only=True, tag="rule"):
    """Judges the document by flat rules: left by the first word that one of them has for it, by `blocked`, or by `ok`."""

    rules: tuple[DocumentRule, ...]

    word: ClassVar[str] = "rule"
    shape: ClassVar[NodeShape] = NodeShape(('{"§ ', '"}'), "shape=diamond, style=filled, penwidth=2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """A rule blocks it, has a word for it, or none has anything against it; or one cannot be judged."""
        return frozenset({OK, BLOCKED, ERROR, *(rule.outcome for rule in self.rules if rule.effect == "outcome")})

    @property
    def required(self) -> tuple[str, ...]:
        """Every word of a rule."""
        return tuple(dict.fromkeys(rule.outcome for rule in self.rules if rule.effect == "outcome"))

    @property
    def detail(self) -> str:
        """The rules."""
        return ", ".join(rule.name for rule in self.rules)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What each rule asks and sets."""
        for rule in self.rules:
            if rule.when is not None:
                yield NodeExpression(f"{WHEN}{rule.name}", f"the rule {rule.name!r} of {node!r}", rule.when)
            if rule.value is not None:
                yield NodeExpression(f"{VALUE}{rule.name}", f"what the rule {rule.name!r} of {node!r} sets", rule.value)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the rules, expressions apart."""
        if not self.rules:
            yield Diagnostic("document_rule", f"{node!r} has no rules; give at least one", node)
        for name, count in Counter(rule.name for rule in self.rules).items():
            if count > 1:
                yield Diagnostic("document_rule", f"{node!r} has {count} rules named {name!r}; name each once", node)
        for rule in self.rules:
            yield from rule_findings(node, rule)
            if rule.phase == "after":
                told = f"the rule {rule.name!r} has something sent, and a node only judges; use a notification or a webhook"
                yield Diagnostic("document_rule", told, node)


def rule_findings(position: str, rule: DocumentRule) -> Iterator[Diagnostic]:
    """What is wrong with one rule, expressions apart."""
    what = f"the rule {rule.name!r}"
    yield from name_findings(position, "document_rule", "the name of a rule", rule.name)
    yield from word_findings(position, "document_rule", f"the effect of {what}", rule.effect, words=EFFECTS)
    if rule.effect in {"set_field", "require_field"} and not rule.field:
        yield Diagnostic("document_rule", f"{what} says {rule.effect!r} and not which field; name one", position)
    if rule.effect == "set_field" and rule.value is None:
        yield Diagnostic(
            "document_rule", f"{what} sets {rule.field!r} and does not say to what; give a value", position
        )
    if rule.effect == "notify" and not (rule.to and rule.subject):
        yield Diagnostic("document_rule", f"{what} tells nobody, or nothing; give `to` and `subject`", position)
    if rule.effect == "webhook" and not rule.url:
        yield Diagnostic("document_rule", f"{what} is sent nowhere; give `url`", position)
    if rule.effect == "outcome":
        yield from name_findings(position, "document_rule", f"the outcome of {what}", rule.outcome)
        if rule.outcome in _RESERVED:
            message = f"{what} has the outcome {rule.outcome!r}, which is kept for the engine; take another word"
            yield Diagnostic("document_rule", message, position)
