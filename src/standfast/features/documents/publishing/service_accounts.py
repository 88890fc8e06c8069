"""Service accounts that the steps of a body act as: the directory must know them, if it knows service accounts at all."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.calls.context import CallContext
from standfast.calls.fact_source import services_in
from standfast.errors import Diagnostic
from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body.diagnostics import BodyDiagnostic
from standfast.features.documents.body.format import ActionNode, Body
from standfast.features.documents.body.node_checks import SERVICE
from standfast.features.documents.contract.ids import prefix_of


def account_problems(desk: CallContext, body: Body) -> tuple[list[BodyDiagnostic], list[Diagnostic]]:
    """Returns what is wrong with the accounts of a body, and what is odd about them; it asks the directory."""
    named = list(_named(body))
    if not named or desk.directory.is_known_empty(desk.tenant, desk.service.shared.clock.now()):
        return [], []
    with desk.directory.looking(desk.tenant) as rows:
        known = {each.id: each for each in rows.principals(sorted({account for *_, account in named}))}
        is_lacking = any(account not in known for *_, account in named)
        services = services_in(rows) if is_lacking else []
    problems, warnings = list[BodyDiagnostic](), list[Diagnostic]()
    for slot, node, account in named:
        found = known.get(account)
        if found is None and services:
            told = f"{node!r} runs as the service account {account!r}, which is not in the directory{suggestion(account, services)}"
            told += "; name one that is, or put it there with kind `service`"
            problems.append(BodyDiagnostic("unknown_service_account", told, node, slot=slot, node=node))
        elif found is not None and found.kind != "service":
            told = f"{node!r} runs as the service account {account!r}, which the directory has as a person; name a service account"
            problems.append(BodyDiagnostic("unknown_service_account", told, node, slot=slot, node=node))
        elif found is not None and not found.is_active:
            told = f"{node!r} runs as the service account {account!r}, which is deactivated: the step will be refused; activate the account, or name another"
            warnings.append(Diagnostic("inactive_service_account", told, node))
    return problems, warnings


def _named(body: Body) -> Iterator[tuple[str, str, str]]:
    for slot, patch in body.slots.items():
        for node in patch.nodes or ():
            if isinstance(node, ActionNode) and node.run_as.startswith(SERVICE):
                yield slot, f"{prefix_of(slot)}{node.id}", node.run_as.removeprefix(SERVICE).strip()
