"""`standfast docs check-edit`, `notify-mutation`, `adopt` and `cancel-branch`: documents that another system keeps, or that were there before."""

from __future__ import annotations

import click

from standfast.cli.documents.document_trails import docs
from standfast.cli.documents.documents import (
    app_option,
    equipped,
    id_argument,
    key_option,
    print_document,
    type_argument,
)
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end
from standfast.cli.options import JsonObject, needed_reason_option, reason_option
from standfast.cli.output import json_option, print_fields, print_json
from standfast.cli.target import Target, tenant_scope

__all__ = ["docs"]

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
    """Whether the system that keeps the data of a document may make these CHANGES now; nothing is written.

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
    """Tell of CHANGES that the system has made which keeps the data of a document: they become a version here.

    Of those that would have been refused nothing is taken, and the run is paused until an operator has looked.
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
    """Have a document managed that was there before. DATA are its fields, as JSON, @file or -.

    It takes the capability `execution:repair`, because no gate has seen it come to its status.
    """
    with equipped(place) as calls:
        made = calls.documents.adopt(kind, document, data, status=status, version=version, reason=reason)
    print_document(made, as_json=as_json)


@docs.command("cancel-branch", examples=["standfast docs cancel-branch invoice I-1 0/2.1 --reason 'nobody needs it'"])
@type_argument
@id_argument
@click.argument("token")
@needed_reason_option
@tenant_scope
def cancel_branch(place: Target, *, kind: str, document: str, token: str, reason: str) -> None:
    """The same as `standfast cancel-branch` for the run of a document: end one of several branches; the others go on without it.

    Its TOKEN is named by `standfast show RUN --json`; which run that is, `standfast docs show` tells. Never one with a gate or an approval ahead.
    """
    with place.calls() as calls:
        run = str(calls.documents.get(kind, document).instance)
        calls.run(run).cancel_branch(token, reason=reason)
    click.echo(f"branch {token} of {kind} {document} has ended")
