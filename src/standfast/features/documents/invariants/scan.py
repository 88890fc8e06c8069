"""Documents looked at one stretch after the other, in batches that are each as of one moment; nobody waits for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from standfast.calls.context import CallContext
from standfast.errors import StandfastError
from standfast.features.documents.invariants.artifacts import artifact_findings
from standfast.features.documents.invariants.checks import looked_at
from standfast.features.documents.invariants.definitions import workflow_findings
from standfast.features.documents.invariants.evidence import Evidence, gathered, scopes_of
from standfast.features.documents.invariants.rules import RULES, InvariantBreach
from standfast.features.documents.invariants.views import InvariantPage, Violation
from standfast.features.operations.seals import flaws, seals_of
from standfast.graph.document_checks import ENVELOPE
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader, InstanceQuery

Pin = tuple[str, str]
"""Name and version of a workflow."""
BATCH = 200
"""Documents that are read at once: enough that statements cost little, few enough that a look is short."""


def page(desk: CallContext, after: InstanceId | None, limit: int, rules: Collection[str]) -> InvariantPage:
    """Look at documents behind one, newest first."""
    items: list[Violation] = []
    checked, last = 0, after
    while checked < limit:
        size = min(BATCH, limit - checked)
        headers = desk.reader.instances(InstanceQuery(kinds=(ENVELOPE,), before=last, limit=size))
        for header, found in batch(desk, [each.id for each in headers]):
            items += [violation(each, header) for each in found if not rules or each.rule in rules]
        checked += len(headers)
        if len(headers) < size:
            return InvariantPage(items=items, checked=checked, next=None)
        last = headers[-1].id
    return InvariantPage(items=items, checked=checked, next=str(last))


def batch(desk: CallContext, names: Sequence[InstanceId]) -> Iterator[tuple[InstanceHeader, list[InvariantBreach]]]:
    """What is wrong with each of these documents, as of one moment."""
    published = set[Pin]()
    for evidence, reader in evidences(desk, names):
        yield evidence.header, list(findings(desk, evidence, reader, published))


def evidences(desk: CallContext, names: Sequence[InstanceId]) -> Iterator[tuple[Evidence, TenantReader]]:
    """What is stored of these documents, with a reader that answers as of the same moment."""
    if not names:
        return
    scopes = [scope for header in desk.reader.headers(names) for scope in scopes_of(header)]
    # Before the look begins: a receipt that came later would be of a commit that the look does not see.
    receipts = desk.service.survey(lambda parts: parts.keeper().receipted(desk.tenant, scopes))
    seals = seals_of(desk, names)
    with desk.reader.look() as reader:
        headers = sorted(reader.headers(names), key=lambda header: header.id, reverse=True)
        for evidence in gathered(reader, headers, receipts, seals):
            yield evidence, reader


def findings(
    desk: CallContext, evidence: Evidence, reader: TenantReader, published: set[Pin]
) -> Iterator[InvariantBreach]:
    """What is wrong with one document; `published` are workflows of which it is known that they are."""
    header = evidence.header
    try:
        program = program_of(desk, header)
    except StandfastError as error:
        yield InvariantBreach("WF-07", f"its workflow cannot be had: {error}")
        return
    pin = (header.definition, header.definition_version)
    if pin not in published:
        stored = desk.registry.library.kept(header.tenant, header.definition, header.definition_version)
        if stored is None or stored.status == "draft":
            yield InvariantBreach("WF-07", "its workflow is not published")
            return
        published.add(pin)
    for told in flaws(evidence.events, evidence.seals, desk.registry.codec):
        yield InvariantBreach("T1", told)
    yield from looked_at(evidence, program, desk.registry.library.speaker, reader)


def program_of(desk: CallContext, header: InstanceHeader) -> Program:
    """What runs a document."""
    return desk.registry.get(header.tenant, header.definition, header.definition_version)


def of_workflows(desk: CallContext, rules: Collection[str]) -> list[Violation]:
    """What is wrong with the published workflows of documents that a tenant has, and with those that all share."""
    library = desk.registry.library
    items = []
    for each in library.listed(desk.tenant):
        if each.kind != ENVELOPE:
            continue
        stored = library.kept(each.tenant, each.name, each.version)
        found = [] if stored is None else [*workflow_findings(stored), *artifact_findings(desk, stored)]
        items += [
            _violation(finding, definition=f"{each.name} version {each.version}")
            for finding in found
            if not rules or finding.rule in rules
        ]
    return items


def violation(found: InvariantBreach, header: InstanceHeader) -> Violation:
    """A finding about a document, for display."""
    return _violation(
        found,
        document=f"{header.definition}/{header.key}",
        instance=header.id,
        definition=f"{header.definition} version {header.definition_version}",
    )


def _violation(
    found: InvariantBreach, *, document: str = "", instance: InstanceId | None = None, definition: str = ""
) -> Violation:
    rule = RULES[found.rule]
    return Violation(
        rule=found.rule,
        told=found.told,
        remedy=rule.remedy,
        is_repairable=rule.is_mended,
        document=document,
        instance=instance,
        definition=definition,
    )
