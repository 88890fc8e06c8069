"""Flat rules: judged before a change is made, or by a node of the workflow; or after it, to have something sent. The same rules, the same judgement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

from standfast.errors import ExpressionError
from standfast.graph.document_spec import DocumentField
from standfast.graph.model import DocumentRule
from standfast.graph.nodes.notification import ROLE
from standfast.kernel.actor import Actor
from standfast.kernel.facts import rules_fact
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.outgoing_requests import post
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events import RulesApplied
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.queries.expression_scope import actor_names
from standfast.machine.model.queries.fields import holds_any
from standfast.machine.model.queries.text_templates import Text, text_of
from standfast.machine.tasks.notifications import IN_APP, NotificationText, send

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
    held: list[str] = []  # noqa: RUF012 - replaced, never changed
    """Those that had an effect."""


def judge(
    turn: DecisionBuilder,
    data: Data,
    rules: Sequence[DocumentRule],
    *,
    actor: Actor,
    may_set: bool = True,
) -> Judged:
    """Judge a content by the rules before a change, in their order; ExpressionError if one cannot be judged.

    Where they may not set anything, what they would have set is not there for those behind them either.
    """
    content, warnings, held, outcome = dict(data), list[str](), list[str](), ""
    index = index_of(turn.routes)
    _look(turn, rules)
    for rule in rules:
        asked = _names(turn, content, actor)
        if rule.phase == "after" or (rule.when is not None and not index.rule(rule.when).holds(asked)):
            continue
        match rule.effect:
            case "block":
                return Judged(content, _blocked(rule), warnings=warnings)
            case "require_field":
                if content.get(rule.field) is None:
                    return Judged(content, rule.reason or f"the rule {rule.name!r} requires {rule.field!r}; give it")
                continue
            case "set_field" if not may_set:
                told = f"the rule {rule.name!r} would set {rule.field!r}, and the document cannot be edited where it is"
                warnings.append(told)
                continue
            case "set_field" if rule.value is not None:
                content[rule.field] = index.rule(rule.value).evaluate(asked)
            case "warn":
                warnings.append(rule.reason or rule.name)
            case "outcome":
                outcome = outcome or rule.outcome
            case _:
                pass
        held.append(f"{rule.name} {rule.effect}")
    return Judged(content, outcome=outcome, warnings=warnings, held=held)


def _look(turn: DecisionBuilder, rules: Sequence[DocumentRule]) -> None:
    """Read what the rules before a change read from outside of the document."""
    if rules:
        stored = (each for rule in rules if rule.phase != "after" for each in (rule.when, rule.value))
        turn.look(index_of(turn.routes).reads(stored))


def follow(
    turn: DecisionBuilder, action: str, rules: Sequence[DocumentRule], *, before: Sequence[str], actor: Actor
) -> None:
    """Have sent what rules want sent after a change, and tell of all that had an effect. One that cannot be judged holds nothing up."""
    held, errors = list(before), list[str]()
    for rule in rules:
        if rule.phase != "after":
            continue
        try:
            turn.look(index_of(turn.routes).reads((rule.when, *rule.templates.values())))
            asked = _names(turn, document_of(turn.state).data, actor)
            if rule.when is None or index_of(turn.routes).rule(rule.when).holds(asked):
                _send(turn, rule, asked)
                held.append(f"{rule.name} {rule.effect}")
        except ExpressionError as error:
            errors.append(f"{rule.name}: {error}")
    if held or errors:
        turn.emit(RulesApplied(action=action, rules=held, errors=errors, by=actor.id))


def _send(turn: DecisionBuilder, rule: DocumentRule, asked: Data) -> None:
    occasion = f"rule:{document_of(turn.state).sequence}:{rule.name}"
    text = partial(_filled, turn, rule, asked)
    if rule.effect == "webhook":
        document = document_of(turn.state)
        fields = index_of(turn.routes).spec.fields
        hidden = {name for name, field in fields.items() if holds_any(field, _is_private)}
        shown: Data = {name: value for name, value in document.data.items() if name not in hidden}
        given: Data = {"url": text("url").shown, "secret": rule.secret, "payload.rule": rule.name}
        post(turn, (0, ""), given | {"payload.document": {**document.own(), "data": shown}}, occasion=occasion)
        return
    people = [
        Person(kind="role" if each.startswith(ROLE) else "user", name=text(f"to.{place}", each.removeprefix(ROLE)).full)
        for place, each in enumerate(rule.to)
    ]
    words = NotificationText(subject=text("subject"), body=text("body"))
    send(turn, (0, ""), words, people, channels=rule.channels or (IN_APP,), occasion=occasion)


def _is_private(field: DocumentField) -> bool:
    """Whether a field is nothing for another system, which has no roles."""
    return field.sensitive or bool(field.audience)


def _filled(turn: DecisionBuilder, rule: DocumentRule, asked: Data, name: str, text: str = "") -> Text:  # noqa: PLR0917 - bound but for the last two
    template = rule.templates.get(name)
    expression = None if template is None else index_of(turn.routes).rule(template)
    return text_of(expression, turn.routes.audiences.guard(expression), text or str(getattr(rule, name, "")), asked)


def _blocked(rule: DocumentRule) -> str:
    return rule.reason or f"the rule {rule.name!r} blocks it; change what it objects to"


def rules_for(turn: DecisionBuilder, *acts: str) -> list[DocumentRule]:
    """The rules that the organisation has in this commit for actions or transitions, each once."""
    found: list[DocumentRule] = []
    for act in acts:
        rules = cast("list[DocumentRule]", turn.fact(rules_fact(turn.routes.graph.name, act)).value)
        found += [each for each in rules if each not in found] if found else rules
    return found


def _names(turn: DecisionBuilder, content: Data, actor: Actor) -> Data:
    document = turn.state.document
    own = {} if document is None else document.own()
    return {
        "entity": {**own, **content},
        "actor": actor_names(actor),
        "org": turn.org,
        "now": turn.moment.now,
        "context": {},
        "related": turn.related,
    }
