"""`standfast docs`: create, edit, submit, amend and inspect documents, also those that another system holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from standfast.app.api.sync import Calls
from standfast.app.configuration import FLAG
from standfast.cli.applications import equip
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verbs
from standfast.cli.options import JsonObject, listed, needed_reason_option, page_behind, reason_option
from standfast.cli.output import Columns, acted_by, cell, coloured, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.errors import ConfigurationError
from standfast.features.documents.content.views import (
    AskedCondition,
    AuditLine,
    DocumentChoice,
    DocumentLink,
    DocumentMutation,
    DocumentRound,
    DocumentSummary,
    DocumentVersion,
    DocumentView,
    FieldDifference,
)

LISTING: Columns[DocumentSummary] = {
    "ID": lambda each: each.id,
    "STATUS": lambda each: each.status,
    "VERSION": lambda each: each.version,
    "BY": lambda each: each.requester,
    "AMENDS": lambda each: each.amended_from,
    "REPLACED BY": lambda each: each.superseded_by,
    "UPDATED": lambda each: each.updated_at,
}
VERSIONS: Columns[DocumentVersion] = {
    "VERSION": lambda each: each.version,
    "STATUS": lambda each: each.status,
    "AT": lambda each: each.written_at,
    "BY": lambda each: each.written_by,
    "HASH": lambda each: each.data_hash[:12],
    "DATA": lambda each: each.data,
}
DIFFERENCES: Columns[FieldDifference] = {
    "FIELD": lambda each: each.field,
    "HOW": lambda each: each.how,
    "BEFORE": lambda each: each.before,
    "AFTER": lambda each: each.after,
}
MUTATIONS: Columns[DocumentMutation] = {
    "NO": lambda each: each.sequence,
    "AT": lambda each: each.made_at,
    "KIND": lambda each: each.kind,
    "ACTION": lambda each: each.action,
    "VERSION": lambda each: f"{each.version_before} → {each.version_after}",
    "BY": lambda each: acted_by(each.actor, each.on_behalf_of),
    "REASON": lambda each: each.reason,
}
AUDIT: Columns[AuditLine] = {
    "NO": lambda each: each.sequence,
    "AT": lambda each: each.at,
    "WHO": lambda each: each.who,
    "FOR": lambda each: each.whom,
    "WHAT": lambda each: each.what,
    "WHICH": lambda each: each.which,
    "WHY": lambda each: each.why,
    "HOW": lambda each: each.how,
}

type_argument = click.argument("kind", metavar="TYPE")
id_argument = click.argument("document", metavar="ID")
expected_option = click.option("--expected-version", type=int, help="Only if the document still has this version.")
app_option = click.option(
    "--app",
    metavar="MODULE:ATTRIBUTE",
    help="What knows the organisation's settings, rules and handlers, as for a worker.",
)
key_option = click.option("--idempotency-key", default="", help="Makes the command safe to repeat.")


@contextmanager
def equipped(place: Target) -> Iterator[Calls]:
    """Return the calls of an engine with the registered application, if one is named; a server has its own."""
    if place.is_remote:
        if place.source.rank("app") == FLAG:
            raise ConfigurationError("a server has an application of its own: leave out --app, or work on a database")
        with place.calls() as calls:
            yield calls
        return
    with place.engine() as engine:
        if place.configuration.app:
            equip(engine, place.configuration.app)
        yield place.acting(engine)


@verbs("docs")
def docs() -> None:
    """Create, edit, submit, amend and inspect documents."""


@docs.command(
    "list",
    examples=["standfast docs list invoice", "standfast docs list invoice --status draft --as bob --requester bob"],
)
@type_argument
@click.option("--status", default="", help="Only those with this status.")
@click.option("--requester", default="", help="Only those that this one wants.")
@listed
@tenant_scope
def list_documents(
    place: Target, *, kind: str, status: str, requester: str, as_json: bool, limit: int, after: str
) -> None:
    """List documents of a type, newest first."""
    with place.calls() as calls:
        page = calls.documents.list(kind, status=status, requester=requester, cursor=after or None, limit=limit)
    print_list(page.items, LISTING, as_json=as_json, after=None if page.next is None else str(page.next))


@docs.command("show", examples=["standfast docs show invoice I-1", "standfast docs show invoice I-1 --version 2"])
@type_argument
@id_argument
@click.option("--version", type=int, help="As it was in this version.")
@json_option
@tenant_scope
def show_document(place: Target, *, kind: str, document: str, version: int | None, as_json: bool) -> None:
    """Show a document, whether it can be edited, and the available transitions."""
    with place.calls() as calls:
        if version is not None:
            kept = calls.documents.version(kind, document, version)
            print_json(kept) if as_json else print_fields(
                {head.lower(): value(kept) for head, value in VERSIONS.items()}
            )
            return
        found = calls.documents.get(kind, document)
    print_document(found, as_json=as_json)


@docs.command("page", examples=["standfast docs page invoice I-1 --version 2 > invoice.html"])
@type_argument
@id_argument
@click.option("--version", type=int, help="As it was in this version; otherwise the newest one.")
@tenant_scope
def show_page(place: Target, *, kind: str, document: str, version: int | None) -> None:
    """Print a version of a document as HTML; sensitive fields are masked."""
    with place.calls() as calls:
        click.echo(calls.documents.page(kind, document, version), nl=False)


@docs.command("create", examples=['standfast docs create invoice \'{"number": "R-1", "grand_total": 500}\' --id I-1'])
@type_argument
@click.argument("data", type=JsonObject())
@click.option("--id", "document", default="", help="Its id; it gets one otherwise.")
@reason_option
@key_option
@app_option
@json_option
@tenant_scope
def create_document(
    place: Target,
    *,
    kind: str,
    data: dict[str, object],
    document: str,
    reason: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Create a document of TYPE. DATA are its fields, as JSON, @file or -."""
    with equipped(place) as calls:
        made = calls.documents.create(kind, data, id=document, reason=reason, idempotency_key=idempotency_key)
    print_document(made, as_json=as_json)


@docs.command("edit", examples=['standfast docs edit invoice I-1 \'{"grand_total": 700}\' --as bob --can "invoice.*"'])
@type_argument
@id_argument
@click.argument("changes", type=JsonObject())
@click.option("--action", default="update", help="The action of the contract that it is.")
@expected_option
@reason_option
@key_option
@app_option
@json_option
@tenant_scope
def edit_document(  # noqa: PLR0913 - all that can be said of an edit
    place: Target,
    *,
    kind: str,
    document: str,
    changes: dict[str, object],
    action: str,
    expected_version: int | None,
    reason: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Change fields of a document; null removes one. Where an edit is an amendment, the new document is shown."""
    with equipped(place) as calls:
        made = calls.documents.mutate(
            kind,
            document,
            changes,
            action=action,
            expected_version=expected_version,
            reason=reason,
            idempotency_key=idempotency_key,
        )
    print_document(made, as_json=as_json)


def _transition(
    place: Target, reference: tuple[str, str], name: str, *, expected: int | None, reason: str
) -> DocumentView:
    with equipped(place) as calls:
        return calls.documents.transition(*reference, name, expected_version=expected, reason=reason)


@docs.command("submit", examples=["standfast docs submit invoice I-1 --as bob --can invoice.submit"])
@type_argument
@id_argument
@expected_option
@reason_option
@app_option
@json_option
@tenant_scope
def submit_document(
    place: Target, *, kind: str, document: str, expected_version: int | None, reason: str, as_json: bool
) -> None:
    """Request the transition `submit`, which most lifecycles have."""
    print_document(
        _transition(place, (kind, document), "submit", expected=expected_version, reason=reason), as_json=as_json
    )


@docs.command("transition", examples=["standfast docs transition invoice I-1 cancel --reason 'sent twice'"])
@type_argument
@id_argument
@click.argument("transition")
@expected_option
@reason_option
@app_option
@json_option
@tenant_scope
def transition_document(
    place: Target,
    *,
    kind: str,
    document: str,
    transition: str,
    expected_version: int | None,
    reason: str,
    as_json: bool,
) -> None:
    """Request a lifecycle transition by name."""
    print_document(
        _transition(place, (kind, document), transition, expected=expected_version, reason=reason), as_json=as_json
    )


@docs.command("amend", examples=['standfast docs amend invoice I-1 \'{"grand_total": 900}\' --reason "wrong total"'])
@type_argument
@id_argument
@click.argument("changes", type=JsonObject())
@click.option("--new-id", default="", help="The id of the document that takes its place; it gets one otherwise.")
@expected_option
@reason_option
@app_option
@json_option
@tenant_scope
def amend_document(
    place: Target,
    *,
    kind: str,
    document: str,
    changes: dict[str, object],
    new_id: str,
    expected_version: int | None,
    reason: str,
    as_json: bool,
) -> None:
    """Amend a document that cannot be edited: a new document replaces it, and needs a new approval."""
    with equipped(place) as calls:
        made = calls.documents.amend(
            kind, document, changes, new_id=new_id, expected_version=expected_version, reason=reason
        )
    print_document(made, as_json=as_json)


@docs.command("versions", examples=["standfast docs versions invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_versions(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List all versions of a document, oldest first."""
    with place.calls() as calls:
        found = calls.documents.versions(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.version)
    print_list(page, VERSIONS, as_json=as_json, after=following)


@docs.command("diff", examples=["standfast docs diff invoice I-1 1 2"])
@type_argument
@id_argument
@click.argument("old", type=int)
@click.argument("new", type=int)
@json_option
@tenant_scope
def diff_versions(place: Target, *, kind: str, document: str, old: int, new: int, as_json: bool) -> None:
    """Compare two versions by field; for sensitive fields without the values."""
    with place.calls() as calls:
        found = calls.documents.diff(kind, document, old, new)
    print_list(found, DIFFERENCES, as_json=as_json)


@docs.command("windows", examples=["standfast docs windows invoice I-1"])
@type_argument
@id_argument
@json_option
@tenant_scope
def show_window(place: Target, *, kind: str, document: str, as_json: bool) -> None:
    """Show whether a document can be edited now, why, and the available transitions."""
    with place.calls() as calls:
        found = calls.documents.get(kind, document)
    if as_json:
        told = {
            "window": found.window,
            "status": found.status,
            "places": found.places,
            "transitions": found.transitions,
        }
        print_json(told)
        return
    print_fields({"window": found.window, "status": found.status, "at": ", ".join(found.places)})
    _print_choices(found)


@docs.command("mutations", examples=["standfast docs mutations invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_mutations(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List the changes of a document, in order."""
    with place.calls() as calls:
        found = calls.documents.mutations(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.sequence)
    print_list(page, MUTATIONS, as_json=as_json, after=following)


@docs.command("audit", examples=["standfast docs audit invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_audit(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List the audit trail of a document, with actor, time, reason and channel; steps of its workflow included."""
    with place.calls() as calls:
        found = calls.documents.audit(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.sequence)
    print_list(page, AUDIT, as_json=as_json, after=following)


@docs.command(
    "redact",
    examples=[
        "standfast docs redact invoice I-1 --reason 'erasure request 7'",
        "standfast docs redact invoice I-1 --field iban --field contact --reason 'erasure request 7'",
    ],
)
@type_argument
@id_argument
@click.option(
    "--field", "fields", multiple=True, help="Only this field; repeatable. Without it, all that are sensitive."
)
@needed_reason_option
@json_option
@tenant_scope
def redact_document(
    place: Target, *, kind: str, document: str, fields: tuple[str, ...], reason: str, as_json: bool
) -> None:
    """Remove the values of fields from a document and its history, permanently."""
    with place.calls() as calls:
        found = calls.documents.redact(kind, document, fields or None, reason=reason)
    if as_json:
        print_json(found)
        return
    told = f"; look at {', '.join(map(cell, found.related))} too" if found.related else ""
    click.echo(f"{', '.join(found.fields) or 'nothing'}: {found.events} events rewritten{told}")


def print_document(found: DocumentView, *, as_json: bool) -> None:
    """Print a document, as JSON or as text."""
    if as_json:
        print_json(found)
        return
    print_fields(
        {
            "document": f"{found.type} {found.id}",
            "status": found.status,
            "version": found.version,
            "window": found.window,
            "at": ", ".join(found.places),
            "amends": found.amended_from,
            "replaced by": found.superseded_by,
            "wanted by": found.requester,
            "workflow": found.workflow_version,
            "run": found.instance,
            "reason": found.run_reason,
            "data": found.data,
        }
    )
    _print_choices(found)


def _print_choices(found: DocumentView) -> None:
    for each in found.transitions:
        told = "" if each.is_allowed else f": not now, {cell(each.why_not)}"
        mark = "▸" if each.is_allowed else "▹"
        click.echo(f"  {mark} {cell(each.name)} → {coloured(cell(each.target))}{told}")


__all__ = ["docs"]

ROUNDS: Columns[DocumentRound] = {
    "ROUND": lambda each: each.round,
    "STATUS": lambda each: each.status,
    "FROM": lambda each: each.started_at,
    "UNTIL": lambda each: each.completed_at,
}
LINKS: Columns[DocumentLink] = {
    "HOW": lambda each: each.how,
    "TYPE": lambda each: each.type,
    "ID": lambda each: each.id,
    "FIELD": lambda each: each.field,
    "STEP": lambda each: each.step or None,
    "AT": lambda each: each.at,
}
CHOICES: Columns[DocumentChoice] = {
    "STEP": lambda each: each.step,
    "NODE": lambda each: each.node,
    "OUTCOME": lambda each: each.outcome,
    "TO": lambda each: each.to,
    "ASKED": lambda each: "; ".join(map(_answered, each.asked)),
    "AT": lambda each: each.at,
}


def _answered(asked: AskedCondition) -> str:
    """Format a decision's input and outcome."""
    return f"{asked.expression} → {asked.error or cell(asked.result)}"


@docs.command("rounds", examples=["standfast docs rounds invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_rounds(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List the rounds of a document, oldest first. A round is a path from a status to the next resting status."""
    with place.calls() as calls:
        found = calls.documents.rounds(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.round)
    print_list(page, ROUNDS, as_json=as_json, after=following)


@docs.command("links", examples=["standfast docs links invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_links(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List the documents and runs that a document refers to, has made, changed or started, or was made by."""
    with place.calls() as calls:
        found = list(enumerate(calls.documents.links(kind, document), start=1))
    page, following = page_behind(found, limit, after, lambda each: each[0])
    print_list([link for _, link in page], LINKS, as_json=as_json, after=following)


@docs.command("choices", examples=["standfast docs choices invoice I-1 --json"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_choices(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """List the decisions on a document's path, with their outcomes; --json includes the input."""
    with place.calls() as calls:
        found = calls.documents.choices(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.step)
    print_list(page, CHOICES, as_json=as_json, after=following)


changes_argument = click.argument("changes", type=JsonObject())
action_option = click.option("--action", default="update", help="The action of the contract that it is.")


@docs.command("check-edit", examples=["standfast docs check-edit invoice I-1 '{\"grand_total\": 700}' --as erp"])
@type_argument
@id_argument
@changes_argument
@action_option
@app_option
@json_option
@tenant_scope
def check_edit(
    place: Target, *, kind: str, document: str, changes: dict[str, object], action: str, as_json: bool
) -> None:
    """Check whether the system that holds a document's data may make these CHANGES now; nothing is stored.

    Exit code 0: it may. 1: it may not.
    """
    with equipped(place) as calls:
        found = calls.documents.check_edit(kind, document, changes, action=action)
    if as_json:
        print_json(found)
    else:
        print_fields(
            {
                "allowed": found.is_allowed,
                "version": found.version,
                "window": found.window,
                "code": found.code,
                "why": found.why,
            }
        )
    end(Exit.DONE if found.is_allowed else Exit.NO)


@docs.command(
    "notify-mutation",
    examples=[
        "standfast docs notify-mutation invoice I-1 '{\"grand_total\": 700}' --as erp --idempotency-key change-88"
    ],
)
@type_argument
@id_argument
@changes_argument
@action_option
@reason_option
@key_option
@app_option
@json_option
@tenant_scope
def notify_mutation(
    place: Target,
    *,
    kind: str,
    document: str,
    changes: dict[str, object],
    action: str,
    reason: str,
    idempotency_key: str,
    as_json: bool,
) -> None:
    """Report CHANGES made by the system that holds a document's data: they become a version here.

    If they would have been refused, none is taken, and the run is paused until an operator has checked.
    """
    with equipped(place) as calls:
        made = calls.documents.notify_mutation(
            kind, document, changes, action=action, reason=reason, idempotency_key=idempotency_key
        )
    print_document(made, as_json=as_json)


@docs.command(
    "adopt", examples=["standfast docs adopt invoice OLD-1 @old.json --status active --version 3 --reason 'moved here'"]
)
@type_argument
@id_argument
@click.argument("data", type=JsonObject())
@click.option("--status", required=True, help="The status that it has; there it waits.")
@click.option("--version", type=click.IntRange(1), default=1, show_default=True, help="The version that it has.")
@reason_option
@app_option
@json_option
@tenant_scope
def adopt_document(
    place: Target,
    *,
    kind: str,
    document: str,
    data: dict[str, object],
    status: str,
    version: int,
    reason: str,
    as_json: bool,
) -> None:
    """Adopt an existing document. DATA are its fields, as JSON, @file or -.

    It takes the capability `execution:repair`, because no gate has checked its status.
    """
    with equipped(place) as calls:
        made = calls.documents.adopt(kind, document, data, status=status, version=version, reason=reason)
    print_document(made, as_json=as_json)


@docs.command("cancel-branch", examples=["standfast docs cancel-branch invoice I-1 0/2.1 --reason 'not needed'"])
@type_argument
@id_argument
@click.argument("token")
@needed_reason_option
@tenant_scope
def cancel_branch(place: Target, *, kind: str, document: str, token: str, reason: str) -> None:
    """Cancel one of several branches of a document's run; same as `standfast cancel-branch`.

    `standfast docs show` prints the run, and `standfast show RUN --json` the TOKEN. A branch with a gate or an approval
    ahead cannot be cancelled.
    """
    with place.calls() as calls:
        run = str(calls.documents.get(kind, document).instance)
        calls.run(run).cancel_branch(token, reason=reason)
    click.echo(f"branch {token} of {kind} {document} has ended")
