"""`standfast bodies scenarios` and `dry-run`: simulate a body without storing anything."""

from __future__ import annotations

from typing import Any

import click

from standfast.cli.documents.bodies import bodies, check_one, draft_option, version_option
from standfast.cli.documents.documents import app_option, equipped, type_argument
from standfast.cli.documents.dry_run import print_dry_run, supposing, supposition
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end
from standfast.cli.options import JsonObject
from standfast.cli.output import Columns, json_option, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.features.documents.scenarios.scenarios import ScenarioResult

__all__ = ["bodies"]

SCENARIOS: Columns[ScenarioResult] = {
    "SCENARIO": lambda each: each.name,
    "PASSED": lambda each: each.is_passed,
    "STATUS": lambda each: each.status,
    "ACCOUNT": lambda each: "" if each.is_passed else each.account(),
}


@bodies.command(
    "scenarios",
    examples=[
        "standfast bodies scenarios invoice",
        "standfast bodies scenarios --draft 01a1e766-3ad5-7618-92bc-aee7fef0c9eb",
    ],
)
@click.argument("kind", metavar="[TYPE]", default="")
@version_option
@draft_option
@json_option
@tenant_scope
def run_scenarios(place: Target, *, kind: str, version: int | None, draft: str, as_json: bool) -> None:
    """Run the scenarios of a body. Exit code 0: all pass. 1: one fails."""
    check_one(kind, draft)
    with place.calls() as calls:
        found = calls.bodies.scenarios(kind, version or 0, draft=draft)
    print_list(found, SCENARIOS, as_json=as_json)
    end(Exit.DONE if all(each.is_passed for each in found) else Exit.NO)


@bodies.command(
    "dry-run",
    examples=[
        'standfast bodies dry-run invoice \'{"number": "R-1", "vendor_id": "V-1", "grand_total": 500}\'',
        "standfast bodies dry-run invoice --document I-1 --decide manager=rejected",
    ],
)
@type_argument
@click.argument("data", type=JsonObject(), default="{}")
@click.option("--document", default="", help="A document that is there; DATA is laid over its fields.")
@draft_option
@supposing
@app_option
@json_option
@tenant_scope
def dry_run(
    place: Target,
    /,
    *,
    kind: str,
    data: dict[str, object],
    document: str,
    draft: str,
    as_json: bool,
    **typed: Any,
) -> None:
    """Simulate a document's path. Nothing is stored; assumptions are marked with a question mark."""
    said = supposition(typed)
    with equipped(place) as calls:
        found = calls.bodies.dry_run(kind, data, document=document, draft=draft, **said)
    print_dry_run(found, as_json=as_json)
