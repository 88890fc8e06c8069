"""`standfast bodies suspend`, `lift`, `suspensions` and `move`: suspend and migrate the workflows of active documents."""

from __future__ import annotations

from collections.abc import Sequence

import click

from standfast.cli.documents.bodies import pair_of
from standfast.cli.documents.documents import type_argument
from standfast.cli.documents.scenarios import bodies
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end
from standfast.cli.options import needed_reason_option
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.features.documents.content.views import DocumentMove
from standfast.features.documents.publishing.views import WorkflowSuspension

__all__ = ["bodies"]

SUSPENSIONS: Columns[WorkflowSuspension] = {
    "TYPE": lambda each: each.type,
    "WORKFLOW": lambda each: each.workflow_version,
    "OUT OF USE": lambda each: each.is_suspended,
    "BY": lambda each: each.set_by,
    "AT": lambda each: each.set_at,
    "WHY": lambda each: each.why,
    "BATCHES": lambda each: ", ".join(each.batches),
}
MOVES: Columns[DocumentMove] = {
    "ID": lambda each: each.id,
    "STATUS": lambda each: each.status,
    "PLACES": lambda each: ", ".join(each.places),
    "MOVED": lambda each: each.is_moved,
    "PROBLEM": lambda each: each.problem,
}
workflow_argument = click.argument("workflow")


@bodies.command("suspend", examples=["standfast bodies suspend invoice 2-org --reason 'it lets everything through'"])
@type_argument
@workflow_argument
@needed_reason_option
@json_option
@tenant_scope
def suspend(place: Target, *, kind: str, workflow: str, reason: str, as_json: bool) -> None:
    """Suspend a workflow: new documents use the previous one, and active documents are paused."""
    with place.calls() as calls:
        made = calls.workflows.suspend(kind, workflow, reason)
    _print(made, as_json=as_json)


@bodies.command("lift", examples=["standfast bodies lift invoice 2-org --reason 'it was not so bad'"])
@type_argument
@workflow_argument
@needed_reason_option
@json_option
@tenant_scope
def lift(place: Target, *, kind: str, workflow: str, reason: str, as_json: bool) -> None:
    """Lift a suspension; the documents that it paused continue."""
    with place.calls() as calls:
        made = calls.workflows.lift(kind, workflow, reason)
    _print(made, as_json=as_json)


@bodies.command("suspensions", examples=["standfast bodies suspensions invoice"])
@click.argument("kind", metavar="[TYPE]", default="")
@json_option
@tenant_scope
def suspensions(place: Target, *, kind: str, as_json: bool) -> None:
    """List suspended and reinstated workflows, oldest first."""
    with place.calls() as calls:
        found = calls.workflows.suspensions(kind)
    print_list(found, SUSPENSIONS, as_json=as_json)


@bodies.command(
    "move",
    examples=[
        "standfast bodies move invoice 1-org 2-org --dry-run --reason 'a board'",
        "standfast bodies move invoice 1-org 2-org --node manager=boss --reason 'a board'",
    ],
)
@type_argument
@workflow_argument
@click.argument("to")
@click.option("--node", "nodes", multiple=True, metavar="OLD=NEW", help="What a node is called there; by its whole id.")
@click.option("--document", "documents", multiple=True, metavar="ID", help="Only this document; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Only report what would be done.")
@needed_reason_option
@json_option
@tenant_scope
def move(  # noqa: PLR0913 - what can be said of a move, by name
    place: Target,
    *,
    kind: str,
    workflow: str,
    to: str,
    nodes: Sequence[str],
    documents: Sequence[str],
    dry_run: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Migrate documents to another version of their workflow. Exit code 0: all can. 1: one cannot."""
    found: list[DocumentMove] = []
    cursor = None
    with place.calls() as calls:
        while True:
            page = calls.workflows.move(
                kind,
                workflow,
                to,
                nodes=dict(pair_of(each) for each in nodes),
                documents=list(documents) or None,
                reason=reason,
                dry_run=dry_run,
                cursor=cursor,
                limit=500,
            )
            found += page.items
            cursor = page.next
            if cursor is None:
                break
    print_list(found, MOVES, as_json=as_json)
    end(Exit.DONE if all(each.is_moved for each in found) else Exit.NO)


def _print(made: WorkflowSuspension, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        print_fields({name.lower(): show(made) for name, show in SUSPENSIONS.items()})
