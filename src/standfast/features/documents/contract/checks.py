"""What can be wrong with a contract whose parts are sound by themselves: names that stand for nothing, states that nobody reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from graphlib import CycleError
from typing import Final

from msgspec import structs

from standfast.errors import Diagnostic, ExpressionError
from standfast.expressions import Expression
from standfast.expressions.model.suggestions import suggestion
from standfast.expressions.model.types import Kind
from standfast.features.documents.contract.edit_windows import is_stricter
from standfast.features.documents.contract.envelope import direct_edges
from standfast.features.documents.contract.expressions import RESERVED, Language, Stored, schema_type
from standfast.features.documents.contract.format import (
    ComputedField,
    Contract,
    ContractAction,
    DateField,
    DatetimeField,
    EnumField,
    Field,
    LifecycleTransition,
    ListField,
    ObjectField,
    Policy,
    Slot,
)
from standfast.graph.document_checks import DEEPEST_FIELDS, in_order
from standfast.graph.document_spec import DocumentField as MachineField
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.reading import Findings, StructReader
from standfast.graph.source_files.values import Formula, empties, milliseconds
from standfast.graph.values.forms import form_faults
from standfast.graph.values.handler_calls import HandlerCall
from standfast.graph.values.value_checks import empty_words, name_findings, time_findings, work_findings
from standfast.machine.model.queries.fields import value_faults

KEPT: Final = frozenset({"pass", "reject", "again", "amend", "timeout", "ok", "amended"})
"""Words that the engine has for leaving a state or a gate."""
GIVES: Final[dict[str, Kind]] = {
    "string": "string",
    "int": "number",
    "money": "number",
    "bool": "bool",
    "date": "date",
    "datetime": "datetime",
}
"""What a formula comes to, by what its field is."""
MOST_STATES: Final = 500
"""States of a lifecycle, and transitions."""
_BUILT_IN: Final = ("create", "update", "amend", "discard")
"""Verbs that every type has."""


class ContractChecks:
    """Checks one contract."""

    def __init__(self, contract: Contract, reader: StructReader, findings: Findings) -> None:
        self._contract = contract
        self._life = contract.lifecycle
        self._reader = reader
        self._findings = findings
        self._language = Language(contract, schema_type(contract), {})

    def run(self) -> None:
        """Find all that is wrong; a lifecycle that is far too large is not looked at."""
        life = self._life
        for what, count in (("states", len(life.states)), ("transitions", len(life.transitions))):
            if count > MOST_STATES:
                told = f"the lifecycle has {count} {what}; use at most {MOST_STATES}"
                self._find("too_many", told, life, what)
        if self._findings.found:
            return
        self._fields()
        self._states()
        self._transitions()
        if not self._findings.found:
            self._reachable()
            self._slots()
        self._actions()
        self._policies()

    # -- fields

    def _fields(self) -> None:
        contract = self._contract
        for name, field in contract.fields.items():
            if name in RESERVED:
                message = f"{shown(name)} is what every document has of itself; take another name"
                self._findings.add("reserved_field", message, self._reader.inner(contract, "fields", name))
            self._field(name, field)
        self._circular()
        for name in contract.system_fields:
            self._known(name, contract.fields, "`system_fields`", "unknown_field_name", contract, "system_fields")

    def _field(self, name: str, field: Field, depth: int = 1) -> None:
        if depth > DEEPEST_FIELDS:
            message = f"{shown(name)} lies deeper than {DEEPEST_FIELDS} levels; make it flatter"
            self._find("too_deep", message, field)
            return
        if self._faults(name_findings(name, "field", "the name of a field with those around it", name), field):
            return
        self._empties(name, field)
        match field:
            case ListField(items=items) if items is not None:
                self._field(f"{name}[]", items, depth + 1)
            case ObjectField(fields=fields):
                for inner, each in fields.items():
                    self._field(f"{name}.{inner}", each, depth + 1)
            case EnumField(values=values) if len(set(values)) < len(values):
                self._find("enum", f"{shown(name)} has a value twice; name each once", field, "values")
            case ComputedField():
                self._computed(name, field)
            case _:
                pass
        if isinstance(field, ListField | ObjectField) and any(map(_is_computed, _inner(field))):
            message = f"{shown(name)} holds a computed field; only fields of the document itself can be computed"
            self._find("computed", message, field)
        wrong = default_problem(field) if depth == 1 or field.default is None else "has no effect there; drop it"
        if wrong:
            self._find("default", f"the default of {shown(name)} {wrong}", field, "default")

    def _circular(self) -> None:
        fields = {name: each for name, each in self._contract.fields.items() if isinstance(each, ComputedField)}
        with suppress(ExpressionError):  # It is told where it stands.
            formulas = {
                name: [self._read(each.formula), None if each.times is None else self._read(each.times)]
                for name, each in fields.items()
            }
            try:
                in_order(formulas)
            except CycleError as error:
                names = error.args[1]
                told = " from ".join(map(shown, names))
                message = f"{told} would be computed; compute a field from those that are given"
                self._find("computed", message, fields[names[0]], "formula")

    def _read(self, formula: Formula) -> Expression:
        return Expression.from_data(self._language.mapping(formula))

    def _computed(self, name: str, field: ComputedField) -> None:
        read = partial(self._language.mapping, field.formula, expects=GIVES[field.gives])
        self._expression(read, f"the formula of {shown(name)}", field, "formula")
        if field.times is not None:
            read = partial(self._language.mapping, field.times, expects="number")
            self._expression(read, f"`times` of {shown(name)}", field, "times")
        if (field.times is not None or field.per > 1) and field.gives not in {"int", "money"}:
            message = f"{shown(name)} gives {field.gives}, and only int and money are taken times or divided; drop it"
            self._find("computed", message, field, "times" if field.times is not None else "per")
        for given in ("default", "required"):
            if self._reader.has(field, given):
                self._find("computed", f"{shown(name)} is computed, so `{given}` has no meaning; drop it", field, given)

    # -- the lifecycle

    def _states(self) -> None:
        life, states = self._life, self._life.states
        self._known(life.initial, states, "`initial`", "unknown_state", life, "initial")
        for name in life.terminal:
            self._known(name, states, "`terminal`", "unknown_state", life, "terminal")
        if not life.terminal:
            message = "no state is terminal, so no document ever ends; name at least one in `terminal`"
            self._find("no_terminal", message, life)
        for field in ("amended", "superseded"):
            if (name := getattr(life, field)) is not None:
                self._known(name, states, f"`{field}`", "unknown_state", life, field)
        if life.superseded is not None and life.superseded not in life.terminal:
            self._find("superseded", f"{shown(life.superseded)} is not terminal; take one that is", life, "superseded")
        if life.amended is None and any(each.window == "amend_only" for each in states.values()):
            message = "some states are amend_only, and `amended` does not say where an amendment begins; give it"
            self._find("amended", message, life)
        if life.amended in states and states[life.amended or ""].window != "editable":
            self._find(
                "amended", f"{shown(life.amended)} is where a document is changed; make it editable", life, "amended"
            )
        self._timeouts()

    def _timeouts(self) -> None:
        life, states = self._life, self._life.states
        names = [each.name for each in life.transitions]
        for name, state in states.items():
            if (state.timeout is None) is not (state.on_timeout is None):
                self._find("timeout", f"{shown(name)} needs both `timeout` and `on_timeout`, or neither", state)
            if state.timeout is not None:
                time = milliseconds(state.timeout)
                self._faults(
                    time_findings(name, "timeout", f"the time of {shown(name)}", time, low=1), state, "timeout"
                )
            if state.timeout is not None and self._is_left_at_once(name):
                told = f"the time of {shown(name)} never begins: a round is completed there, so that nothing waits"
                instead = "drop `timeout`" if name in life.terminal else "say `completes: false`, or drop `timeout`"
                self._find("timeout", f"{told}; {instead}", state, "timeout")
            if state.on_timeout is not None:
                leads = [each.name for each in life.transitions if name in each.sources]
                self._known(
                    state.on_timeout, leads, f"`on_timeout` of {shown(name)}", "unknown_transition", state, "on_timeout"
                )
        for each in life.transitions:
            if names.count(each.name) > 1:
                self._find(
                    "duplicate_transition",
                    f"there are several {shown(each.name)}; give each its own name",
                    each,
                    "name",
                )

    def _is_left_at_once(self, name: str) -> bool:
        """Whether a state completes a round, or ends the life of the document."""
        said = self._life.states[name].completes
        others = (each for each in self._life.transitions if name in each.sources and each.kind != "cancel")
        return name in self._life.terminal or (next(others, None) is None if said is None else said)

    def _transitions(self) -> None:
        life = self._life
        for each in life.transitions:
            what = shown(each.name)
            if each.name in KEPT:
                self._find("reserved_transition", f"{what} is a word of the engine's; take another name", each, "name")
            for name in each.sources:
                self._known(name, life.states, f"`from` of {what}", "unknown_state", each, "from")
            self._known(each.to, life.states, f"`to` of {what}", "unknown_state", each, "to")
            if len(set(each.sources)) < len(each.sources):
                self._find("from", f"{what} leads from the same state twice; name each once", each, "from")
            if each.to in each.sources:
                self._find("from", f"{what} leads from {shown(each.to)} to itself; take it out of `from`", each, "from")
            if each.on_reject is not None:
                self._known(each.on_reject, life.states, f"`on_reject` of {what}", "unknown_state", each, "on_reject")
            if each.on_reject in life.terminal:
                self._find(
                    "on_reject",
                    f"{what} would end a document that was rejected; name a state it can go on from",
                    each,
                    "on_reject",
                )
            self._terminal(each)
            self._beginning(each)

    def _beginning(self, each: LifecycleTransition) -> None:
        """What begins by itself must be the only one that does, and know from where."""
        if each.begins != "by_itself":
            return
        if len(each.sources) > 1:
            message = (
                f"{shown(each.name)} begins by itself, so it leads from one state; split it, or let it be asked for"
            )
            self._find("begins", message, each, "begins")
        for other in self._life.transitions:
            if other is not each and other.begins == "by_itself" and set(other.sources) & set(each.sources):
                message = f"both {shown(each.name)} and {shown(other.name)} begin by themselves; let one be asked for"
                self._find("begins", message, each, "begins")

    def _terminal(self, each: LifecycleTransition) -> None:
        life = self._life
        for name in each.sources:
            if name in life.terminal:
                message = f"{shown(each.name)} leads on from {shown(name)}, which is terminal; drop one of the two"
                self._find("terminal", message, each, "from")
        if each.kind == "cancel" and each.to not in life.terminal:
            message = f"{shown(each.name)} cancels, and {shown(each.to)} is not terminal; change `kind` or `to`"
            self._find("kind", message, each, "kind")
        windows = [life.states[name].window for name in each.sources if name in life.states]
        for window in windows:
            if each.window is not None and is_stricter(window, each.window):
                message = f"the gate of {shown(each.name)} is {each.window}, and it is entered from {window}; make it at least as strict"
                self._find("window", message, each, "window")

    def _reachable(self) -> None:
        """States that no document can come to, and states that no end is reached from."""
        life = self._life
        steps = [(name, each.to) for each in life.transitions for name in each.sources]
        steps += [
            (each.name and source, each.on_reject)
            for each in life.transitions
            if each.on_reject
            for source in each.sources
        ]
        begun = [life.initial, *([life.amended] if life.amended else [])]
        seen = _closure(begun, steps)
        seen |= {life.superseded or next(iter(life.terminal), "")} if life.amended else set()
        for name in life.states:
            if name not in seen:
                message = f"no transition leads to {shown(name)}; add one, or remove the state"
                self._findings.add("unreachable_state", message, self._reader.inner(life, "states", name))
        ending = _closure(life.terminal, [(target, source) for source, target in steps])
        for name in life.states:
            if name in seen and name not in ending:
                message = f"no way leads from {shown(name)} to an end; add a transition, such as cancel"
                self._findings.add("endless_state", message, self._reader.inner(life, "states", name))

    # -- slots

    def _slots(self) -> None:
        edges = direct_edges(self._contract)
        known = {end for pair in edges for end in pair}
        taken: dict[tuple[str, str], str] = {}
        seen: set[str] = set()
        for slot in self._contract.slots:
            if slot.id in seen:
                self._find("duplicate_slot", f"there are several {shown(slot.id)}; give each its own id", slot, "id")
            seen.add(slot.id)
            ends = (slot.entry, slot.exit)
            for field, end in (("entry", slot.entry), ("exit", slot.exit)):
                self._known(end, known, f"`{field}` of {shown(slot.id)}", "unknown_node", slot, field)
            if set(ends) <= known and ends not in edges:
                message = f"{shown(slot.id)} lies on no edge: nothing leads from {slot.entry} straight to {slot.exit}"
                self._find("slot_edge", f"{message}; take two nodes that follow one another", slot, "exit")
            elif ends in taken:
                message = f"{shown(slot.id)} lies where {shown(taken[ends])} does; keep one of them"
                self._find("slot_edge", message, slot)
            taken[ends] = slot.id
            self._slot_window(slot)

    def _slot_window(self, slot: Slot) -> None:
        entry = slot.entry.removeprefix("sys:state:")
        state = self._life.states.get(entry)
        if slot.entry != entry and state is not None and is_stricter(state.window, slot.window):
            message = (
                f"{shown(slot.id)} is {slot.window}, and the document still is {shown(entry)}, which is {state.window}"
            )
            self._find("window", f"{message}; make the slot at least as strict", slot, "window")

    # -- actions and policies

    def _actions(self) -> None:
        prefix = f"{self._contract.entity_type}."
        seen: set[str] = set()
        for action in self._contract.actions:
            if not action.name.startswith(prefix):
                message = f"{shown(action.name)} is not of this type; write {prefix}{action.name.split('.')[-1]}"
                self._find("action_name", message, action, "name")
            if action.name in seen:
                self._find("duplicate_action", f"there are several {shown(action.name)}; keep one", action, "name")
            seen.add(action.name)
            if action.handler is not None:
                work = HandlerCall(handler=action.handler)
                self._faults(work_findings(action.name, shown(action.name), work, least_calls=1), action, "handler")
            self._payload(action)

    def _payload(self, action: ContractAction) -> None:
        if action.payload is None:
            return
        for each in form_faults(action.name, action.payload):
            message = f"the payload of {shown(action.name)} is wrong: {each.message}"
            self._findings.add("payload", message, self._reader.within(action, "payload", each.path))

    def _policies(self) -> None:
        known = [each.name for each in self._contract.actions]
        known += [f"{self._contract.entity_type}.{verb}" for verb in _BUILT_IN]
        known += [f"{self._contract.entity_type}.{each.name}" for each in self._life.transitions]
        for policy in self._contract.policies:
            self._faults(name_findings(policy.name, "policy", "the name of a policy", policy.name), policy, "name")
            self._empties(policy.name, policy)
            for name in policy.actions:
                if not any(fnmatchcase(each, name) for each in known):
                    told = suggestion(name, known) or f"; there are {', '.join(known)}"
                    message = f"{shown(policy.name)} is about {shown(name)}, which is no action{told}"
                    self._find("unknown_action", message, policy, "actions")
            if policy.when is not None:
                read = partial(self._language.condition, policy.when)
                self._expression(read, f"the condition of {shown(policy.name)}", policy, "when")

    # -- findings

    def _empties(self, name: str, part: Field | Policy) -> None:
        """Lists of roles that hold none: they would let nobody, and must not let everybody."""
        for field, then in empties(part):
            self._find("empty", empty_words(f"`{field}` of {shown(name)}", then), part, field)

    def _expression(self, read: Callable[[], Stored], what: str, part: object, field: str) -> None:
        try:
            self._language.check_own(read())
        except ExpressionError as error:
            self._find("expression", f"{what} is wrong: {error}", part, field)

    def _known(self, name: str, known: Iterable[str], what: str, code: str, part: object, field: str) -> None:  # noqa: PLR0917 - a name and its place
        listed = sorted(known)
        if name not in listed:
            told = suggestion(name, listed) or f"; there are {', '.join(listed)}"
            self._find(code, f"{what} names {shown(name)}, which is not there{told}", part, field)

    def _faults(self, found: Iterable[Diagnostic], part: object, field: str = "") -> bool:
        """Whether the machine has something against a value."""
        faults = list(found)
        for each in faults:
            self._find(each.code, each.message, part, field)
        return bool(faults)

    def _find(self, code: str, message: str, part: object, field: str = "") -> None:
        self._findings.add(code, message, self._reader.at(part, field))


_DEFAULTS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "money": (int,),
    "bool": (bool,),
    "list": (list,),
    "object": (dict,),
}
"""What a default can be; of all other fields it is a text."""


def default_problem(field: Field) -> str:
    """What is wrong with a field's default, as the end of a sentence; empty if nothing is."""
    value, kind = field.default, str(type(field).__struct_config__.tag)
    is_sound = type(value) in _DEFAULTS.get(kind, (str,))
    if isinstance(field, EnumField):
        is_sound &= value in field.values
    if is_sound and isinstance(field, DateField | DatetimeField):
        is_sound = not list(value_faults(MachineField(type="date" if kind == "date" else "datetime"), value, ""))
    if value is None or isinstance(field, ComputedField):
        return ""
    if is_sound and all(not default_problem(structs.replace(each, default=part)) for each, part in _parts(field)):
        return ""
    return f"is {shown(value)}, which is no {kind}; give one, or none"


def _parts(field: Field) -> Iterator[tuple[Field, object]]:
    """The values of a default that is a list or an object, each with the field that it is for."""
    match field:
        case ListField(items=items, default=list() as values) if items is not None:
            yield from ((items, each) for each in values)
        case ObjectField(fields=fields, default=dict() as values) if fields:
            yield from ((fields[name], each) for name, each in values.items() if name in fields)
        case _:
            pass


def _inner(field: ListField | ObjectField) -> Iterator[Field]:
    if isinstance(field, ObjectField):
        yield from field.fields.values()
    elif field.items is not None:
        yield field.items


def _is_computed(field: Field) -> bool:
    return isinstance(field, ComputedField)


def _closure(begun: Iterable[str], steps: Iterable[tuple[str, str]]) -> set[str]:
    onward: dict[str, set[str]] = {}
    for source, target in steps:
        onward.setdefault(source, set()).add(target)
    seen = set(begun)
    pending = list(seen)
    while pending:
        fresh = onward.get(pending.pop(), set()) - seen
        seen |= fresh
        pending += fresh
    return seen
