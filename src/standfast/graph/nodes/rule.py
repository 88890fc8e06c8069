"""Rule nodes: evaluate flat rules on a document."""

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
"""Effects after a change. They cannot undo it, and the run does not wait for them."""
BLOCKED = "blocked"
WHEN, VALUE = "when.", "value."
"""Prefixes of expression names: the condition of a rule, and the value that it sets."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)
_RESERVED = frozenset({ERROR, "*"})


class DocumentRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A flat rule, evaluated before a change or by a node, or after the change if it only sends something."""

    name: str
    when: Stored | None = None
    """Its condition. None means always."""
    effect: Effect = "block"
    field: str = ""
    """The field for `set_field` and `require_field`."""
    value: Stored | None = None
    """The value for `set_field`."""
    reason: str = ""
    """Reason for the person who is blocked or warned."""
    outcome: str = ""
    """Outcome of the node, for the effect `outcome`."""
    on: tuple[str, ...] = ()
    """Actions and transitions that it applies to. Empty means all."""
    to: tuple[str, ...] = ()
    """Recipients for `notify`: users, addresses, `role:<name>`."""
    subject: str = ""
    body: str = ""
    channels: tuple[str, ...] = ()
    url: str = ""
    """URL for `webhook`."""
    secret: str = ""
    """Reference to the signing secret."""
    templates: dict[str, Stored] = {}
    """Stored templates of the texts with placeholders, by field."""

    @property
    def phase(self) -> Phase:
        """Whether it is evaluated before or after the change."""
        return "after" if self.effect in AFTERWARDS else "before"


class RuleOp(NodeOp, frozen=True, kw_only=True, tag="rule"):
    """Evaluates flat rules on the document. Its outcome is that of the first matching rule, `blocked`, or `ok`."""

    rules: tuple[DocumentRule, ...]

    word: ClassVar[str] = "rule"
    shape: ClassVar[NodeShape] = NodeShape(('{"§ ', '"}'), "shape=diamond, style=filled, penwidth=2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Blocked, an outcome of a rule, ok, or failed."""
        return frozenset({OK, BLOCKED, ERROR, *(rule.outcome for rule in self.rules if rule.effect == "outcome")})

    @property
    def required(self) -> tuple[str, ...]:
        """All outcomes of rules."""
        return tuple(dict.fromkeys(rule.outcome for rule in self.rules if rule.effect == "outcome"))

    @property
    def detail(self) -> str:
        """The rules."""
        return ", ".join(rule.name for rule in self.rules)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the conditions and values of the rules."""
        for rule in self.rules:
            if rule.when is not None:
                yield NodeExpression(f"{WHEN}{rule.name}", f"the rule {rule.name!r} of {node!r}", rule.when)
            if rule.value is not None:
                yield NodeExpression(f"{VALUE}{rule.name}", f"what the rule {rule.name!r} of {node!r} sets", rule.value)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the rules, without expressions."""
        if not self.rules:
            yield Diagnostic("document_rule", f"{node!r} has no rules; give at least one", node)
        for name, count in Counter(rule.name for rule in self.rules).items():
            if count > 1:
                yield Diagnostic("document_rule", f"{node!r} has {count} rules named {name!r}; name each once", node)
        for rule in self.rules:
            yield from rule_findings(node, rule)
            if rule.phase == "after":
                told = f"the rule {rule.name!r} sends something, and a node only evaluates; use a notification or a webhook"
                yield Diagnostic("document_rule", told, node)


def rule_findings(position: str, rule: DocumentRule) -> Iterator[Diagnostic]:
    """Yield the findings of one rule, without expressions."""
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
        yield Diagnostic("document_rule", f"{what} has no recipient or no text; give `to` and `subject`", position)
    if rule.effect == "webhook" and not rule.url:
        yield Diagnostic("document_rule", f"{what} is sent nowhere; give `url`", position)
    if rule.effect == "outcome":
        yield from name_findings(position, "document_rule", f"the outcome of {what}", rule.outcome)
        if rule.outcome in _RESERVED:
            message = f"{what} has the outcome {rule.outcome!r}, which is kept for the engine; take another word"
            yield Diagnostic("document_rule", message, position)
