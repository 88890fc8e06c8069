"""Flat rules: judged before a change is applied, or by a node of the workflow. The same rules, the same judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kernel.actor import Actor
from holdfast.machine.graphs.graph import DocumentRule
from holdfast.machine.runs.namespaces import actor_names
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import index_of

Data = dict[str, object]


class Judged(NamedTuple):
    """What rules have to say."""

    data: Data
    """The content, with what they have set."""
    blocked: str = ""
    """Why it may not be; empty if it may."""
    outcome: str = ""
    """The word of the first rule that has one for it."""
    warnings: list[str] = []  # noqa: RUF012 - replaced, never changed


def judge(turn: Turn, data: Data, rules: Sequence[DocumentRule], *, actor: Actor, org: Data | None = None) -> Judged:
    """Judge a content by rules, in their order; ExpressionError if one cannot be judged."""
    content, warnings, outcome = dict(data), list[str](), ""
    for rule in rules:
        asked = _names(turn, content, actor, org)
        index = index_of(turn.routes)
        if rule.when is not None and not index.rule(rule.when).holds(asked):
            continue
        match rule.effect:
            case "block":
                return Judged(content, _blocked(rule), warnings=warnings)
            case "require_field" if content.get(rule.field) is None:
                return Judged(content, rule.reason or f"the rule {rule.name!r} requires {rule.field!r}; give it")
            case "set_field" if rule.value is not None:
                content[rule.field] = index.rule(rule.value).evaluate(asked)
            case "warn":
                warnings.append(rule.reason or rule.name)
            case "outcome":
                outcome = outcome or rule.outcome
            case _:
                pass
    return Judged(content, outcome=outcome, warnings=warnings)


def _blocked(rule: DocumentRule) -> str:
    return rule.reason or f"the rule {rule.name!r} blocks it; change what it objects to"


def _names(turn: Turn, content: Data, actor: Actor, org: Data | None) -> Data:
    document = turn.state.document
    own = {} if document is None else document.own()
    return {
        "entity": {**own, **content},
        "actor": actor_names(actor),
        "org": org if org is not None else {} if document is None else document.org,
        "now": turn.moment.now,
        "context": {},
    }
