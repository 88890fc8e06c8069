"""Whether a tenant's contract may stand before the shared one of its type: only if that allows it, and never with fewer rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.authoring.document.compiler import compile_effective
from holdfast.authoring.document.contract_format import Contract
from holdfast.authoring.document.document_spec import document_spec
from holdfast.authoring.document.envelope import generate_envelope
from holdfast.machine.graphs.document import DocumentPolicy, DocumentSpec, Field, Transition
from holdfast.machine.graphs.document_checks import BUILT_IN, actions_of

Related = Mapping[str, Contract]


def fewer_rights(shared: Contract, own: Contract, *, related: Related) -> Iterator[str]:
    """What the tenant's contract lets somebody do that the shared one does not, each with what to do."""
    before, after = (
        document_spec(compile_effective(generate_envelope(each), related=related)) for each in (shared, own)
    )
    yield from _transitions(before, after)
    yield from _actions(before, after)
    yield from _policies(before, after)
    yield from _fields(before.fields, after.fields, "")
    if after.self_approval and not before.self_approval:
        yield "authors must not approve their own documents; leave `self_approval` out"


def _asked(wanted: str, of: str) -> str:
    return f"{of} takes {wanted!r} in the shared contract; ask for that `permission` here too"


def _transitions(before: DocumentSpec, after: DocumentSpec) -> Iterator[str]:
    """One of another name must not lead to where all others ask for a permission."""
    known = {each.name: each for each in before.transitions}
    into: dict[str, list[Transition]] = {}
    for each in before.transitions:
        into.setdefault(each.target, []).append(each)
    for each in after.transitions:
        same = known.get(each.name)
        if same is not None and same.capability and each.capability != same.capability:
            yield _asked(same.capability, f"the transition {each.name!r}")
        wanted = [other.capability for other in into.get(each.target, ())]
        if same is None and wanted and all(wanted) and each.capability not in wanted:
            yield _asked(" or ".join(sorted(set(wanted))), f"a transition to {each.target!r}, such as {each.name!r},")


def _actions(before: DocumentSpec, after: DocumentSpec) -> Iterator[str]:
    """What is there without a word asks for nothing, and an amendment is an edit where there is no action for it."""
    known, own = actions_of(before), actions_of(after)
    for name in {*known, *own}:
        one, other = known.get(name), own.get(name, own["update"] if name == "amend" else None)
        if other is None:
            continue
        wanted = known["update"].capability if one is None else one.capability
        lacks = not other.capability if one is None else other.capability != wanted
        if wanted and lacks:
            yield _asked(wanted, f"the action {name!r}")
        if one is not None and other.workflow_allowed and not one.workflow_allowed:
            yield f"the workflow may not do {name!r} in the shared contract; leave `workflow_allowed` out"


def _policies(before: DocumentSpec, after: DocumentSpec) -> Iterator[str]:
    """A policy allows: what one of the shared contract is about is allowed by those alone, or by some of them."""
    names = {each.name for each in after.transitions} | set(actions_of(after)) | set(BUILT_IN)
    for name in sorted(names):
        known, own = (_about(each.policies, name) for each in (before, after))
        if known and (not own or not own <= known):
            yield f"policies of the shared contract say who may do {name!r}; take them over for it, and no others"


def _about(policies: tuple[DocumentPolicy, ...], name: str) -> set[tuple[tuple[str, ...], str]]:
    return {(tuple(sorted(each.roles)), str(each.when)) for each in policies if name in each.actions}


def _fields(before: Mapping[str, Field], after: Mapping[str, Field], within: str) -> Iterator[str]:
    for name, one in before.items():
        other, place = after.get(name), f"{within}{name}"
        if other is None:
            continue
        if one.sensitive and not other.sensitive:
            yield f"the field {place!r} is `sensitive` in the shared contract; keep that"
        if one.visible_to and not (other.visible_to and set(other.visible_to) <= set(one.visible_to)):
            yield f"the field {place!r} is visible to {', '.join(one.visible_to)} in the shared contract; keep `visible_to`"
        yield from _fields(one.fields, other.fields, f"{place}.")
        if one.items is not None and other.items is not None:
            yield from _fields({"items": one.items}, {"items": other.items}, f"{place}.")
