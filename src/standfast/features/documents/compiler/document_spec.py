"""What a graph says of its documents, from the contract and the compiled workflow."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import cast

from standfast.expressions import Expression
from standfast.expressions.model.tree import variables
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.contract.expressions import RELATED, Language, Stored, schema_type
from standfast.features.documents.contract.format import (
    ComputedField,
    Contract,
    EnumField,
    Field,
    LifecycleTransition,
    ListField,
    ObjectField,
    OnReject,
    RefField,
    Slot,
)
from standfast.features.documents.contract.ids import IN, gate_id, proxy_id
from standfast.graph import document_spec as d
from standfast.graph.document_checks import BUILT_IN
from standfast.graph.field_visibility import with_sources


def document_spec(effective: Effective) -> d.DocumentSpec:
    """The documents of a compiled workflow."""
    contract = effective.contract
    life = contract.lifecycle
    return d.DocumentSpec(
        entity_type=contract.entity_type,
        fields=fields_of(contract),
        initial=life.initial,
        states={name: state.window for name, state in life.states.items()},
        terminal=tuple(life.terminal),
        transitions=tuple(_transition(effective, each) for each in life.transitions),
        actions=_actions(contract),
        regions=_regions(effective),
        policies=_policies(contract),
        windows=dict(effective.windows),
        stable=tuple(effective.stable),
        amendment=contract.amendment,
        amended=life.amended or "",
        superseded=life.superseded or life.terminal[0],
        on_drift=contract.on_drift,
        self_approval=contract.self_approval,
        contract_version=str(contract.version),
        envelope_version=str(effective.envelope_version),
        compiler_version=effective.compiler_version,
        reads=_reads(effective),
    )


def _reads(effective: Effective) -> dict[str, tuple[str, ...]]:
    """Which fields of the documents that it refers to the steps read, by the field that refers to them."""
    stored = [each for node in effective.nodes_by_id.values() for each in node.formulas.values()]
    stored += [edge.when for edge in effective.edges_by_id.values() if edge.when is not None]
    found: dict[str, set[str]] = {}
    for each in stored:
        for variable in variables(Expression.from_data(each).tree):
            if variable.path[0] == RELATED:
                found.setdefault(variable.path[1], set()).add(variable.path[2])
    return {name: tuple(sorted(names)) for name, names in sorted(found.items())}


def verb(contract: Contract, action: str) -> str:
    """The name of an action without its type, as graphs have it."""
    return action.removeprefix(f"{contract.entity_type}.")


def fields_of(contract: Contract) -> dict[str, d.DocumentField]:
    """The fields of documents; a computed one is for nobody who may not see what it reads."""
    language = Language(contract, schema_type(contract), {})
    system = set(contract.system_fields)
    given = {name: _field(each, language, is_system=name in system) for name, each in contract.fields.items()}
    return with_sources(given)


def _field(field: Field, language: Language, *, is_system: bool = False) -> d.DocumentField:
    kind = cast("d.FieldType", type(field).__struct_config__.tag)
    return d.DocumentField(
        type=kind,
        required=field.required,
        values=tuple(field.values) if isinstance(field, EnumField) else (),
        items=_field(field.items, language) if isinstance(field, ListField) and field.items is not None else None,
        fields={name: _field(each, language) for name, each in field.fields.items()}
        if isinstance(field, ObjectField)
        else {},
        of=field.of if isinstance(field, RefField) else "",
        formula=language.mapping(field.formula) if isinstance(field, ComputedField) else None,
        times=_times(field, language),
        per=field.per if isinstance(field, ComputedField) else 1,
        sensitive=field.sensitive,
        visible_to=tuple(field.visible_to or ()),
        default=field.default,
        system=is_system,
    )


def _times(field: Field, language: Language) -> Stored | None:
    return language.mapping(field.times) if isinstance(field, ComputedField) and field.times is not None else None


def _transition(effective: Effective, transition: LifecycleTransition) -> d.DocumentTransition:
    """What begins by itself does so only where an organisation has put something before its gate."""
    slots = [slot.id for slot in effective.contract.slots if slot.exit == gate_id(transition.name)]
    is_filled = any(proxy_id(slot, IN) in effective.nodes_by_id for slot in slots)
    return d.DocumentTransition(
        name=transition.name,
        sources=tuple(transition.sources),
        target=transition.to,
        capability=transition.permission or "",
        begins="by_itself" if transition.begins == "by_itself" and is_filled else "asked",
        kind="" if transition.kind == "forward" else transition.kind,
    )


def _actions(contract: Contract) -> tuple[d.DocumentAction, ...]:
    return tuple(
        d.DocumentAction(
            name=verb(contract, each.name),
            payload=each.payload,
            capability=each.permission or "",
            workflow_allowed=each.workflow_allowed,
            handler=each.handler or "",
            creates=each.creates,
        )
        for each in contract.actions
    )


def _policies(contract: Contract) -> tuple[d.DocumentPolicy, ...]:
    """The policies, with the patterns of their actions spelt out."""
    language = Language(contract, schema_type(contract), {})
    known = {verb(contract, each.name): None for each in contract.actions}
    known |= dict.fromkeys((*BUILT_IN, *(each.name for each in contract.lifecycle.transitions)))
    return tuple(
        d.DocumentPolicy(
            name=policy.name,
            actions=tuple(
                name
                for name in known
                if any(fnmatchcase(f"{contract.entity_type}.{name}", pattern) for pattern in policy.actions)
            ),
            roles=tuple(policy.roles or ()),
            when=None if policy.when is None else language.condition(policy.when),
        )
        for policy in contract.policies
    )


def _regions(effective: Effective) -> tuple[d.Region, ...]:
    return tuple(
        d.Region(
            id=slot.id,
            entry=slot.entry,
            exit=slot.exit,
            window=effective.windows.get(proxy_id(slot.id, IN), slot.window),
            stable=slot.stable,
            on_edit=slot.on_edit,
            on_reject=_on_reject(effective, slot),
        )
        for slot in sorted(effective.contract.slots, key=lambda slot: slot.id)
    )


def _on_reject(effective: Effective, slot: Slot) -> OnReject:
    """What a rejection does to the steps of a slot: the contract says so, or the patch that fills it."""
    proxy = effective.nodes_by_id.get(proxy_id(slot.id, IN))
    said = (slot.on_reject, None if proxy is None else proxy.config.get("on_reject"))
    return "compensate" if "compensate" in said else "keep"
