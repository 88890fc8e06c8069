"""Rules as somebody gives them, read and checked against the documents that they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from standfast.errors import DefinitionError, Diagnostic, ExpressionError, PayloadError
from standfast.expressions import Expression, ExpressionErrorCode, ExpressionOptions, Spelling, Type, parse
from standfast.expressions.model.tree import variables
from standfast.features.documents.contract.expressions import leads_away
from standfast.graph.document_checks import actions_of
from standfast.graph.document_spec import DocumentField, DocumentSpec
from standfast.graph.nodes.rule import DocumentRule, Effect, rule_findings
from standfast.graph.values.value_checks import some_findings
from standfast.kernel.codec.type_cache import settled

Data = dict[str, object]
Stored = dict[str, object]

MOST_RULES: Final = 200
"""Of one type and organisation: each change is judged by all of them."""
_OPTIONS: Final = ExpressionOptions(namespaces=frozenset({"entity", "actor", "org", "now"}))
_SOME: Final = {
    "on": "it would never be judged",
    "to": "nobody would be told",
    "channels": "nobody would be told",
}
"""The lists of a rule, and what an empty one would come to."""
_OF_FIELD: Final = 2
"""Names in the path to a field of the document."""
_TEXTS: Final = ("subject", "body", "url")
_PLAIN: Final = {
    "string": Type("string"),
    "enum": Type("string"),
    "int": Type("number"),
    "money": Type("money"),
    "bool": Type("bool"),
    "date": Type("date"),
    "datetime": Type("datetime"),
}
_OWN: Final = {
    "id": Type("string"),
    "type": Type("string"),
    "status": Type("string"),
    "version": Type("number"),
    "amended_from": Type("string"),
}


class GivenRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule in the words of whoever gives it."""

    name: str
    effect: Effect
    when: str = ""
    """The condition under which it has its effect; empty means always."""
    on: list[str] | None = None
    """The actions and transitions that it is about; without it, all of them."""
    field: str = ""
    value: object = None
    """What `set_field` sets the field to: an expression, or a value that is no text."""
    reason: str = ""
    to: list[str] | None = None
    subject: str = ""
    body: str = ""
    channels: list[str] | None = None
    url: str = ""
    secret: str = ""


def read_rules(spec: DocumentSpec, given: object) -> list[DocumentRule]:
    """The rules as they are judged; DefinitionError lists everything that is wrong with them."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or len(given) > MOST_RULES:
        raise PayloadError(f"rules are a list of at most {MOST_RULES} objects, each with `name` and `effect`")
    reader = _Reader(spec)
    rules = [rule for place, each in enumerate(given) if (rule := reader.read(place, each)) is not None]
    for name, count in Counter(each.name for each in rules).items():
        if count > 1:
            reader.find("document_rule", f"there are {count} rules named {name!r}; name each once", name)
    if reader.found:
        raise DefinitionError("the rules", reader.found)
    return rules


class _Reader:
    def __init__(self, spec: DocumentSpec) -> None:
        self._spec = spec
        self._actions = {*actions_of(spec), "amend", *(each.name for each in spec.transitions)}
        fields = {name: _type(each) for name, each in spec.fields.items()}
        entity = Type("object", fields={**fields, **_OWN})
        self._refs = {name for name, each in spec.fields.items() if each.type == "ref"}
        self._schema = Type(
            "object", fields={"entity": entity, "actor": Type("object"), "org": Type("object"), "now": Type("datetime")}
        )
        self.found: list[Diagnostic] = []

    def find(self, code: str, message: str, position: str) -> None:
        """Something is wrong."""
        self.found.append(Diagnostic(code, message, position))

    def read(self, place: int, given: object) -> DocumentRule | None:
        """One rule; None if it cannot be read at all."""
        position = str(given.get("name", "")) if isinstance(given, Mapping) else ""
        position = position or f"rule {place + 1}"
        try:
            rule = msgspec.convert(given, settled(GivenRule))
        except msgspec.ValidationError as error:
            self.find("document_rule", f"{position}: {error}; correct it", position)
            return None
        for listed, then in _SOME.items():
            named: list[str] | None = getattr(rule, listed)
            if named is not None:
                self.found += some_findings(position, "document_rule", f"`{listed}` of {position!r}", named, then=then)
        for name in sorted(set(rule.on or ()) - self._actions):
            known = ", ".join(sorted(self._actions))
            self.find("document_rule", f"{position!r} is about {name!r}; there are {known}", position)
        if rule.field and rule.field not in self._spec.fields:
            known = ", ".join(sorted(self._spec.fields))
            self.find("document_rule", f"{position!r} names the field {rule.field!r}; there are {known}", position)
        written = self._spec.fields.get(rule.field)
        if rule.effect == "set_field" and written is not None and (written.system or written.type == "computed"):
            who = "computed" if written.type == "computed" else "written by the workflow alone"
            self.find(
                "document_rule", f"{position!r} sets {rule.field!r}, which is {who}; take another field", position
            )
        if rule.effect == "outcome":
            self.find("document_rule", f"{position!r} has an outcome, which only nodes have; block, or warn", position)
        texts = {name: str(getattr(rule, name)) for name in _TEXTS} | {
            f"to.{at}": each.removeprefix("role:") for at, each in enumerate(rule.to or ())
        }
        made = DocumentRule(
            name=rule.name,
            effect=rule.effect,
            when=self._stored(rule.when, position, "native") if rule.when else None,
            field=rule.field,
            value=self._value(rule, position),
            reason=rule.reason,
            on=tuple(rule.on or ()),
            to=tuple(rule.to or ()),
            subject=rule.subject,
            body=rule.body,
            channels=tuple(rule.channels or ()),
            url=rule.url,
            secret=rule.secret,
            templates={
                name: stored
                for name, text in texts.items()
                if "{" in text and (stored := self._stored(text, position, "template")) is not None
            },
        )
        self.found += rule_findings(position, made)
        return made

    def _value(self, rule: GivenRule, position: str) -> Stored | None:
        if rule.value is None:
            return None
        text = rule.value if isinstance(rule.value, str) else msgspec.json.encode(rule.value).decode()
        return self._stored(text, position, "mapping")

    def _stored(self, text: str, position: str, spelling: Spelling) -> Stored | None:
        try:
            read = parse(text, spelling=spelling, options=_OPTIONS)
            self._check_own(read)
            return read.check(self._schema, expects="bool" if spelling == "native" else None).to_data()
        except ExpressionError as error:
            self.find("expression", f"{text!r} of {position!r} is wrong: {error}", position)
            return None

    def _check_own(self, read: Expression) -> None:
        """Refuse what reads another document: rules know no facts of one."""
        for each in variables(read.tree):
            if len(each.path) > _OF_FIELD and each.path[0] == "entity" and each.path[1] in self._refs:
                raise ExpressionError(
                    leads_away(each.path),
                    reason=ExpressionErrorCode.NOT_AN_OBJECT,
                    source=read.source,
                    position=each.at,
                )


def _type(field: DocumentField) -> Type:
    return _PLAIN.get(field.type, Type("any"))
