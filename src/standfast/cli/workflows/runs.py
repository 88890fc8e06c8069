"""`standfast start`, `list`, `show`, `watch`, `history` and `why`: start and inspect runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypedDict, Unpack

import click
import msgspec

from standfast.app.api.sync import Calls
from standfast.calls.references import checked_instance
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.hints import in_commands
from standfast.cli.options import Duration, Instant, Json, listed, moment_after, number_after, page_of, place_of
from standfast.cli.output import Columns, acted_by, cell, coloured, json_option, print_fields, print_json, print_list
from standfast.cli.run_arguments import run_argument
from standfast.cli.target import Target, acted, tenant_scope
from standfast.cli.text_graph import drawn_run
from standfast.errors import ConfigurationError, NotFoundError
from standfast.expressions.model.suggestions import suggestion
from standfast.features.runs import views

SUMMARY: Columns[views.InstanceSummary] = {
    "ID": lambda each: each.id,
    "WORKFLOW": lambda each: each.definition,
    "VERSION": lambda each: each.definition_version,
    "STATUS": lambda each: each.status,
    "REASON": lambda each: each.reason,
    "KEY": lambda each: each.key,
    "STARTED": lambda each: each.created_at,
    "UPDATED": lambda each: each.updated_at,
}
HISTORY: Columns[views.HistoryEntry] = {
    "#": lambda each: each.sequence,
    "AT": lambda each: each.timestamp,
    "EVENT": lambda each: each.event_type,
    "STEP": lambda each: each.step_name,
    "STATUS": lambda each: each.status,
    "BY": lambda each: acted_by(each.actor, each.on_behalf_of),
    "TOLD": lambda each: each.error or each.comment,
}


class Beginning(TypedDict):
    """The parameters of a start."""

    input: object
    version: str
    key: str
    idempotency_key: str
    delay: timedelta
    comment: str


class Filters(TypedDict):
    """The filters of a list of runs."""

    definition: str
    version: str
    status: tuple[str, ...]
    is_active: bool | None
    key: str
    parent: str | None
    next_step: str
    since: datetime | None
    before: datetime | None
    oldest_first: bool | None


_WELL: Final = frozenset({"completed"})


@verb(
    "start",
    'standfast start order --input \'{"sku": "lamp"}\' --key o-1',
    "standfast start order --input @order.json --wait 30s",
)
@click.argument("workflow")
@click.option("--input", type=Json(), default="{}", help="What it is started with: JSON, @file, or -.")
@click.option("--version", default="", help="Which version, if not the newest.")
@click.option("--key", default="", help="A business key: there can be one run with it, ever.")
@click.option("--idempotency-key", default="", help="Makes the call safe to repeat: the same key gives the same run.")
@click.option("--delay", type=Duration(), default="0s", help="Put the first step off.")
@click.option("--comment", default="", help="A comment for the history.")
@click.option("--wait", type=Duration(), help="Wait for its end for so long, and print its result.")
@json_option
@acted
def start(
    place: Target, /, *, workflow: str, wait: timedelta | None, as_json: bool, **given: Unpack[Beginning]
) -> None:
    """Start a run of WORKFLOW, and print its id once it is stored. A worker executes its steps.

    With --wait: exit code 9 if it fails, 7 on a timeout; the run continues.
    """
    with place.calls() as calls:
        try:
            run = calls.start(workflow, **given)
        except NotFoundError as error:
            raise _unpublished(calls, workflow, error) from error
        if wait is not None:
            click.echo(
                f"this is run {run.id}", err=True
            )  # Printed first, so that the user can find the run after an interruption or a timeout.
            print_json({"id": run.id, "result": run.result(timeout=wait.total_seconds())})
        elif as_json:
            print_json({"id": run.id})
        else:
            click.echo(str(run.id))


def _unpublished(calls: Calls, workflow: str, error: NotFoundError) -> NotFoundError:
    """Add the published versions, or a similar name, to the error: names met by an engine without a worker do not help."""
    if error.kind != "workflow":
        return error
    published = calls.definitions.list()
    versions = [each.version for each in published if each.name == workflow]
    if versions:
        return NotFoundError("workflow", error.name, hint=f"published are {', '.join(versions)}")
    near = suggestion(error.name, {each.name for each in published})
    return NotFoundError("workflow", error.name, hint=f"nothing of this name is published{near}")


@verb(
    "list",
    "standfast list",
    "standfast list --status failed --since 2026-03-01T00:00:00Z",
    "standfast list --paused --definition order --json",
    "standfast list --paused --next-step ship",
)
@click.option("--definition", default="", help="Only runs of this workflow.")
@click.option("--version", default="", help="Only those of this version of it.")
@click.option("--status", multiple=True, help="Only those that are in this status; repeatable.")
@click.option("--active/--ended", "is_active", default=None, help="Only those that have not ended, or that have.")
@click.option("--key", default="", help="Only the one with this business key.")
@click.option("--parent", help="Only those that this run has started.")
@click.option("--next-step", default="", help="Of paused runs, only those that go on with this step.")
@click.option("--since", type=Instant(), help="Only those that were started, or with --paused were paused, after this.")
@click.option("--before", type=Instant(), help="Only those that were started, or paused, before this.")
@click.option("--oldest-first", is_flag=True, default=None, help="From the other end.")
@click.option("--paused", "group", flag_value="paused", help="Those that are paused or wait for an operator.")
@click.option("--resumable", "group", flag_value="resumable", help="Paused ones that are about to go on.")
@click.option("--stuck", "group", flag_value="stuck", help="Those that nothing can ever wake; there should be none.")
@listed
@tenant_scope
def list_runs(
    place: Target, /, *, group: str | None, as_json: bool, limit: int, after: str, **filters: Unpack[Filters]
) -> None:
    """List runs, newest first by default; paused runs by the time of their pause."""
    with place.calls() as calls:
        if group in {"paused", "resumable"}:
            found, more = _paused(calls, filters, after=after, limit=limit, is_resumable=group == "resumable")
        else:
            page = _page(calls, filters, after=after, limit=limit, is_stuck=group == "stuck")
            found, more = page.items, None if page.next is None else str(page.next)
    print_list(found, SUMMARY, as_json=as_json, after=more)


def _page(calls: Calls, filters: Filters, *, after: str, limit: int, is_stuck: bool) -> views.Page:
    if is_stuck:
        _check_unused(filters, tuple(filters))
        return calls.runs.stuck(cursor=after or None, limit=limit)
    _check_unused(filters, ["next_step"])
    return calls.runs.list(
        definition=filters["definition"],
        version=filters["version"],
        status=filters["status"],
        is_active=filters["is_active"],
        key=filters["key"],
        parent=filters["parent"],
        created_after=filters["since"],
        created_before=filters["before"],
        oldest_first=bool(filters["oldest_first"]),
        cursor=after or None,
        limit=limit,
    )


def _paused(
    calls: Calls, filters: Filters, *, after: str, limit: int, is_resumable: bool
) -> tuple[Sequence[views.InstanceSummary], str | None]:
    used = {"definition"} if is_resumable else {"definition", "next_step", "since", "before"}
    _check_unused(filters, [name for name in filters if name not in used])
    last, definition = _last_paused(after), filters["definition"]
    if is_resumable:
        found = calls.runs.resumable(definition=definition, after=last, limit=limit + 1)
    else:
        found = calls.runs.paused(
            definition=definition,
            next_step=filters["next_step"],
            since=filters["since"],
            before=filters["before"],
            after=last,
            limit=limit + 1,
        )
    return page_of(found, limit, lambda each: place_of(each.paused_at, each.id))


def _check_unused(filters: Mapping[str, object], names: Iterable[str]) -> None:
    for name in names:
        if filters[name] not in (None, "", ()):
            flag = "active" if name == "is_active" else name.replace("_", "-")
            raise ConfigurationError(f"--{flag} does not go with this list; leave it out")


def _last_paused(after: str) -> views.InstanceSummary | None:
    """Return the position of the last item: only id and pause of a run count."""
    if not after:
        return None
    paused_at, name = moment_after(after)
    instance = checked_instance(name)
    return views.InstanceSummary(
        id=instance,
        definition="",
        definition_version="",
        key="",
        status="",
        reason="",
        parent=None,
        created_at=paused_at,
        updated_at=paused_at,
        ended_at=None,
        paused_at=paused_at,
    )


@verb(
    "show",
    "standfast show 01a1e766-3ad5-7618-92bc-aee7fef0c9eb",
    "standfast show 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --at 4",
)
@run_argument
@click.option("--at", type=click.IntRange(1), help="As it was after the event with this number in its history.")
@json_option
@tenant_scope
def show(place: Target, *, run: str, at: int | None, as_json: bool) -> None:
    """Show a run: its status, and its graph with the status of each step."""
    with place.calls() as calls:
        handle = calls.run(run)
        if at is not None:
            past = calls.runs.state_at(run, at)
            print_json(past) if as_json else print_fields(msgspec.structs.asdict(past))
            return
        told, steps = handle.describe(), handle.steps()
        diagram = handle.diagram(format="json")
    if as_json:
        print_json({"run": told, "steps": steps, "graph": msgspec.json.decode(diagram)})
        return
    print_fields(_fields(told))
    click.echo()
    for line in drawn_run(diagram, steps):
        click.echo(line)


def _fields(told: views.WorkflowInstance) -> dict[str, object]:
    return {
        "run": told.id,
        "workflow": told.definition_id,
        "status": told.status,
        "reason": told.reason,
        "outcome": told.outcome,
        "error": in_commands(told.error),
        "key": told.key,
        "parent": told.parent,
        "started": told.created_at,
        "ended": told.ended_at,
        "paused": told.paused_at,
        "paused by": told.paused_by,
        "until": told.paused_until,
        "held by": [each.scope for each in told.held_by],
        "input": told.input,
        "data": told.context,
        "result": told.result,
    }


@verb("history", "standfast history 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --limit 20")
@run_argument
@listed
@tenant_scope
def history(place: Target, *, run: str, as_json: bool, limit: int, after: str) -> None:
    """List the events of a run, in order."""
    with place.calls() as calls:
        found = calls.run(run).history(after=number_after(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.sequence)
    print_list(shown, HISTORY, as_json=as_json, after=more)


@verb("why", "standfast why 01a1e766-3ad5-7618-92bc-aee7fef0c9eb")
@run_argument
@json_option
@tenant_scope
def why(place: Target, *, run: str, as_json: bool) -> None:
    """Explain why a run does not progress, and list the remedies.

    Exit code 1 if nothing can wake it, which is a bug.
    """
    with place.calls() as calls:
        told = calls.run(run).why()
    if as_json:
        print_json(told)
    else:
        click.echo(cell(in_commands(told.words)))
        for each in told.reasons:
            if each.remedy:
                click.echo(f"  → {cell(in_commands(each.remedy))}")
        for untold in told.untold:
            click.echo(f"  ! {cell(untold)}")
    end(Exit.NO if told.is_incident else Exit.DONE)


@verb(
    "watch",
    "standfast watch 01a1e766-3ad5-7618-92bc-aee7fef0c9eb",
    "standfast watch 01a1e766-3ad5-7618-92bc-aee7fef0c9eb --timeout 5m",
)
@run_argument
@click.option("--interval", type=Duration(), default="500ms", show_default=True, help="How often to look.")
@click.option("--timeout", type=Duration(), help="Give up after so long; the run goes on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, an event on each line.")
@tenant_scope
def watch(place: Target, *, run: str, interval: timedelta, timeout: timedelta | None, as_json: bool) -> None:
    """Print the events of a run as they happen, until it has ended.

    Exit code 0: it has completed. 9: it has ended otherwise. 7: it has not ended in time.
    """
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    with place.calls() as calls:
        handle, last = calls.run(run), 0
        while True:
            told = handle.describe()  # Before the history, so that the end is printed before the command acts on it.
            for entry in handle.history(after=last):
                _print_entry(entry, as_json=as_json)
                last = entry.sequence
            if told.is_terminal:
                break
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {run} has not ended: it is {told.status}")
            time.sleep(interval.total_seconds())
    if not as_json:
        click.echo(
            f"{run} is {coloured(told.status)}{': ' + cell(told.outcome or told.error) if told.outcome or told.error else ''}"
        )
    end(Exit.DONE if told.status in _WELL else Exit.FAILED)


def _print_entry(entry: views.HistoryEntry, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(entry, enc_hook=str))
        return
    told = [cell(entry.timestamp), cell(entry.event_type), cell(entry.step_name), coloured(cell(entry.status))]
    click.echo("  ".join([*filter(None, told), *([cell(entry.error)] if entry.error else [])]))
