"""`standfast schedules`: start workflows at given times."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from standfast.cli.framework import verbs
from standfast.cli.options import (
    Duration,
    Instant,
    JsonObject,
    listed,
    number_after,
    page_of,
    reason_option,
)
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.features.schedules.views import CatchUp, FireInfo, Overlap, Schedule


def _when(schedule: Schedule) -> str:
    """Format the times of a schedule."""
    if schedule.cron:
        return f"{schedule.cron} {schedule.time_zone}"
    if schedule.every_seconds is not None:
        return f"every {timedelta(seconds=schedule.every_seconds)}"
    return "once"


LISTING: Columns[Schedule] = {
    "ID": lambda each: each.id,
    "WORKFLOW": lambda each: each.workflow,
    "WHEN": _when,
    "STATUS": lambda each: each.status,
    "NEXT": lambda each: each.next_at,
    "RUNNING": lambda each: len(each.running),
    "REVISION": lambda each: each.revision,
    "NOTE": lambda each: each.note,
}
FIRES: Columns[FireInfo] = {
    "NUMBER": lambda each: each.number,
    "AT": lambda each: each.at,
    "UNTIL": lambda each: each.until,
    "WHY": lambda each: each.why,
    "STATUS": lambda each: each.status,
    "RUN": lambda each: each.run,
    "DOCUMENT": lambda each: each.document,
    "DETAIL": lambda each: each.detail,
}
_OVERLAPS = click.Choice(["skip", "buffer_one", "allow_all", "cancel_running"])


@verbs("schedules")
def schedules() -> None:
    """Start workflows at given times."""


@schedules.command("list", examples=["standfast schedules list --workflow report"])
@click.option("--workflow", default="", help="Only those that start this one.")
@listed
@tenant_scope
def list_schedules(place: Target, *, workflow: str, as_json: bool, limit: int, after: str) -> None:
    """List the schedules, newest first."""
    with place.calls() as calls:
        found = calls.schedules.list(
            workflow=workflow, after=calls.schedules.get(after) if after else None, limit=limit + 1
        )
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@schedules.command("show", examples=["standfast schedules show nightly"])
@click.argument("schedule")
@json_option
@tenant_scope
def show_schedule(place: Target, *, schedule: str, as_json: bool) -> None:
    """Show a schedule: its definition, its next time, and its runs."""
    with place.calls() as calls:
        _print(calls.schedules.get(schedule), as_json=as_json)


@schedules.command(
    "put",
    examples=[
        "standfast schedules put nightly report --cron '0 2 * * *' --time-zone Europe/Berlin",
        "standfast schedules put poll sync --every 15m --overlap buffer_one --input '{\"full\": false}'",
        "standfast schedules put launch announce --at 2026-03-31T12:00:00Z",
        "standfast schedules put rent invoice --cron '0 6 1 * *' --input @rent.json --document-id \"'rent-{scheduled_on}'\"",
    ],
)
@click.argument("schedule")
@click.argument("workflow")
@click.option("--version", default="", help="The newest one at each time if none is named.")
@click.option("--input", "given", type=JsonObject(), help="What each run is given: JSON, @file, or -.")
@click.option("--computed", type=JsonObject(), help="Expressions that give more of it, by name.")
@click.option("--document-id", default="", help="Expression of a document's id; made of schedule and time if left out.")
@click.option("--cron", default="", help="Minute, hour, day of the month, month, day of the week.")
@click.option("--time-zone", default="UTC", show_default=True, help="Whose clock the cron means.")
@click.option("--every", type=Duration(), help="The time between two starts, such as 15m.")
@click.option("--at", type=Instant(), help="The one time of its only start.")
@click.option("--start-at", type=Instant(), help="No start is before.")
@click.option("--end-at", type=Instant(), help="No start is after.")
@click.option("--jitter", type=Duration(), default="0s", help="Up to how much later each start is.")
@click.option(
    "--overlap",
    type=_OVERLAPS,
    help="What becomes of a time that meets a run: skip if left out; of documents allow_all alone.",
)
@click.option(
    "--catch-up",
    type=click.Choice(["none", "one", "all"]),
    default="one",
    show_default=True,
    help="How many of the times that were missed are made up for.",
)
@click.option("--window", type=Duration(), help="What was missed longer ago is not made up for.")
@click.option("--note", default="", help="What it is for.")
@click.option("--revision", type=int, help="The revision that you have seen, 0 if none.")
@json_option
@acted
def put_schedule(  # noqa: PLR0913 - the options of a command
    place: Target,
    *,
    schedule: str,
    workflow: str,
    version: str,
    given: dict[str, object] | None,
    computed: dict[str, object] | None,
    document_id: str,
    cron: str,
    time_zone: str,
    every: timedelta | None,
    at: datetime | None,
    start_at: datetime | None,
    end_at: datetime | None,
    jitter: timedelta,
    overlap: Overlap | None,
    catch_up: CatchUp,
    window: timedelta | None,
    note: str,
    revision: int | None,
    as_json: bool,
) -> None:
    """Create or update a schedule: start WORKFLOW by a cron expression, at an interval, or once.

    If WORKFLOW is a document type, each fire creates a document.
    """
    with place.calls() as calls:
        found = calls.schedules.put(
            schedule,
            workflow,
            given,
            version=version,
            computed=computed,  # type: ignore[arg-type]  # The engine says which are no expressions.
            cron=cron,
            time_zone=time_zone,
            every=every,
            at=at,
            start_at=start_at,
            end_at=end_at,
            jitter=jitter,
            overlap=overlap,
            catch_up=catch_up,
            window=window,
            document_id=document_id,
            note=note,
            expected_version=revision,
        )
    _print(found, as_json=as_json)


@schedules.command("pause", examples=["standfast schedules pause nightly --reason 'the printer is broken'"])
@click.argument("schedule")
@reason_option
@json_option
@tenant_scope
def pause_schedule(place: Target, *, schedule: str, reason: str, as_json: bool) -> None:
    """Pause a schedule; fires during the pause are skipped."""
    with place.calls() as calls:
        _print(calls.schedules.pause(schedule, reason), as_json=as_json)


@schedules.command("resume", examples=["standfast schedules resume nightly"])
@click.argument("schedule")
@reason_option
@json_option
@tenant_scope
def resume_schedule(place: Target, *, schedule: str, reason: str, as_json: bool) -> None:
    """Resume a schedule with its next time."""
    with place.calls() as calls:
        _print(calls.schedules.resume(schedule, reason), as_json=as_json)


@schedules.command("trigger", examples=["standfast schedules trigger nightly"])
@click.argument("schedule")
@click.option("--overlap", type=_OVERLAPS, help="Another policy than that of the schedule.")
@click.option("--id", "command_id", default="", help="Makes the call safe to repeat.")
@json_option
@acted
def trigger_schedule(place: Target, *, schedule: str, overlap: Overlap | None, command_id: str, as_json: bool) -> None:
    """Trigger a schedule now, even if it is paused, and print the outcome."""
    with place.calls() as calls:
        found = calls.schedules.trigger(schedule, overlap=overlap, command_id=command_id)
    if as_json:
        print_json(found)
    else:
        print_fields({head.lower(): value(found) for head, value in FIRES.items()})


@schedules.command(
    "backfill",
    examples=["standfast schedules backfill nightly 2026-03-01T00:00:00Z 2026-03-07T00:00:00Z"],
)
@click.argument("schedule")
@click.argument("start", type=Instant(), required=False)
@click.argument("end", type=Instant(), required=False)
@click.option("--at-once", is_flag=True, help="All runs begin together, and not one after the other.")
@click.option("--stop", is_flag=True, help="Start nothing more for periods, instead.")
@click.option("--id", "command_id", default="", help="Makes the call safe to repeat.")
@json_option
@acted
def backfill_schedule(
    place: Target,
    *,
    schedule: str,
    start: datetime | None,
    end: datetime | None,
    at_once: bool,
    stop: bool,
    command_id: str,
    as_json: bool,
) -> None:
    """Backfill a schedule for every time from START to END, sequentially."""
    if stop == (start is not None and end is not None):
        raise click.UsageError("give START and END, or --stop")
    with place.calls() as calls:
        if start is None or end is None:
            found = calls.schedules.stop_backfills(schedule)
        else:
            found = calls.schedules.backfill(schedule, start, end, at_once=at_once, command_id=command_id)
    _print(found, as_json=as_json)


@schedules.command("fires", examples=["standfast schedules fires nightly --json"])
@click.argument("schedule")
@listed
@tenant_scope
def list_fires(place: Target, *, schedule: str, as_json: bool, limit: int, after: str) -> None:
    """List the fires with their outcomes, the last one first."""
    with place.calls() as calls:
        found = calls.schedules.fires(schedule, after=number_after(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.number)
    print_list(shown, FIRES, as_json=as_json, after=more)


@schedules.command("next", examples=["standfast schedules next nightly --limit 5"])
@click.argument("schedule")
@click.option("--from", "begin", type=Instant(), help="Those after this instant, instead of now.")
@click.option("--limit", type=click.IntRange(1, 500), default=10, show_default=True, help="How many at most.")
@json_option
@tenant_scope
def next_times(place: Target, *, schedule: str, begin: datetime | None, limit: int, as_json: bool) -> None:
    """List the next times."""
    with place.calls() as calls:
        found = calls.schedules.next_times(schedule, after=begin, limit=limit)
    if as_json:
        print_json({"times": found})
        return
    for each in found:
        click.echo(each.isoformat())


@schedules.command("delete", examples=["standfast schedules delete nightly"])
@click.argument("schedule")
@click.option("--revision", type=int, help="The revision that you have seen.")
@acted
def delete_schedule(place: Target, *, schedule: str, revision: int | None) -> None:
    """Delete a schedule; its runs continue."""
    with place.calls() as calls:
        calls.schedules.delete(schedule, expected_version=revision)
    click.echo(f"{schedule} is deleted")


def _print(found: Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    told = {head.lower(): value(found) for head, value in LISTING.items()}
    print_fields(
        {
            **told,
            "input": found.input,
            "computed": found.computed,
            "overlap": found.overlap,
            "catch up": found.catch_up,
            "paused by": found.paused_by,
            "reason": found.pause_reason,
            "owner": found.owner,
            "runs": [str(each.run) for each in found.running],
        }
    )
