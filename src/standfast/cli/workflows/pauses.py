"""`standfast pauses`: pause a definition, a step, a tenant or all work. `standfast pause` is for one run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import click

from standfast.calls.operator_views import PauseInfo
from standfast.cli.framework import verbs
from standfast.cli.options import Duration, Instant, listed, number_after, page_of, reason_option
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.errors import ConfigurationError

LISTING: Columns[PauseInfo] = {
    "ID": lambda each: each.id,
    "TENANT": lambda each: each.tenant,
    "WORKFLOW": lambda each: each.definition,
    "VERSION": lambda each: each.version,
    "STEP": lambda each: each.step,
    "BY": lambda each: each.paused_by,
    "SINCE": lambda each: each.paused_at,
    "UNTIL": lambda each: each.until,
    "ENDED": lambda each: each.ended_at,
    "HELD": lambda each: each.held_effects + each.held_timers,
    "REASON": lambda each: each.reason,
}

scope_options = (
    click.option("--definition", help="A workflow; all of the tenant's if none is named."),
    click.option("--version", help="One version of it."),
    click.option("--step", help="One step of it."),
    click.option("--of-tenant", "of", help="Another tenant, or * for all."),
)


@verbs("pauses")
def pauses() -> None:
    """Pause a workflow, a step or a tenant, and list pauses."""


@pauses.command("list", examples=["standfast pauses list", "standfast pauses list --with-ended --json"])
@click.option("--with-ended", is_flag=True, help="Those that are over too.")
@click.option("--of-tenant", "of", default="", help="Another tenant, or * for all.")
@listed
@tenant_scope
def list_pauses(place: Target, *, with_ended: bool, of: str, as_json: bool, limit: int, after: str) -> None:
    """List the pauses that concern the tenant, newest first."""
    with place.calls() as calls:
        before = number_after(after) or None
        found = calls.pauses.list(tenant=of, with_ended=with_ended, before=before, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@pauses.command("show", examples=["standfast pauses show 3"])
@click.argument("pause", type=int)
@json_option
@tenant_scope
def show_pause(place: Target, *, pause: int, as_json: bool) -> None:
    """Show a pause: how much it holds, and whether it is fully applied or released."""
    with place.calls() as calls:
        _print(calls.pauses.get(pause), as_json=as_json)


@pauses.command(
    "pause",
    examples=[
        "standfast pauses pause --definition order --step charge --reason 'the bank is down'",
        "standfast pauses pause --whole-tenant --for 1h",
        "standfast pauses pause --of-tenant '*' --for 1h",
    ],
)
@scope_options[0]
@scope_options[1]
@scope_options[2]
@scope_options[3]
@click.option(
    "--whole-tenant", is_flag=True, help="Everything of the tenant, where neither a workflow nor a tenant is named."
)
@reason_option
@click.option(
    "--clock",
    type=click.Choice(["run_on", "stand_still"]),
    default="run_on",
    show_default=True,
    help="What becomes of timers meanwhile.",
)
@click.option("--until", type=Instant(), help="When it ends.")
@click.option("--for", "duration", type=Duration(), help="After how long it ends.")
@json_option
@tenant_scope
def begin(  # noqa: PLR0913 - the options of a command
    place: Target,
    *,
    definition: str | None,
    version: str | None,
    step: str | None,
    of: str | None,
    whole_tenant: bool,
    reason: str,
    clock: Literal["run_on", "stand_still"],
    until: datetime | None,
    duration: timedelta | None,
    as_json: bool,
) -> None:
    """Pause a workflow, one version or one step of it, or a whole tenant."""
    if {definition, version, step, of} == {None} and not whole_tenant:
        raise ConfigurationError(
            "this would hold back everything of the tenant; name a workflow by --definition, or say --whole-tenant"
        )
    with place.calls() as calls:
        found = calls.pauses.pause(
            definition, version=version, step=step, tenant=of, reason=reason, clock=clock, until=until or duration
        )
    _print(found, as_json=as_json)


@pauses.command(
    "resume", examples=["standfast pauses resume 3", "standfast pauses resume --definition order --step charge"]
)
@click.argument("pause", type=int, required=False)
@scope_options[0]
@scope_options[1]
@scope_options[2]
@scope_options[3]
@reason_option
@json_option
@tenant_scope
def finish(
    place: Target,
    *,
    pause: int | None,
    definition: str | None,
    version: str | None,
    step: str | None,
    of: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """End a pause, by its number or its scope."""
    with place.calls() as calls:
        if pause is not None:
            found = calls.pauses.resume(pause, reason=reason)
        else:
            found = calls.pauses.resume(definition, version=version, step=step, tenant=of, reason=reason)
    _print(found, as_json=as_json)


def _print(found: PauseInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    told = {name.lower(): value(found) for name, value in LISTING.items() if name != "HELD"}
    held = f"{found.held_effects} effects, {found.held_timers} timers"
    print_fields({**told, "clock": found.clock, "held": held, "settled": found.is_settled})
