"""What operators do to a run that cannot go on as it is: end its steps by hand, change its data, take it back, fork it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import click

from holdfast.app.forking import ForkPreview
from holdfast.app.pause_views import ResumeOption
from holdfast.cli.exits import Exit
from holdfast.cli.frame import end, verb
from holdfast.cli.options import Json, JsonObject, needed_reason_option
from holdfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from holdfast.cli.place import Place, placed
from holdfast.cli.repairs import numbered, step_argument, wait_option
from holdfast.cli.runs import run_argument
from holdfast.errors import ConfigurationError

_ID: Final = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"
OPTIONS: Columns[ResumeOption] = {
    "ACTION": lambda each: each.action,
    "STEP": lambda each: each.step_name,
    "CHOICES": lambda each: ", ".join(each.choices),
    "ROLE": lambda each: each.role,
    "CAPABILITY": lambda each: each.capability,
    "STEP ID": lambda each: each.step_id,
}


@verb("complete", f"holdfast complete {_ID} ship --output '{{\"parcel\": 77}}' --reason 'confirmed by phone'")
@run_argument
@step_argument
@click.option("--output", "given", type=Json(), help="What its handler would have answered: JSON, @file, or -.")
@needed_reason_option
@placed
def complete(place: Place, *, run: str, step: str, given: object, reason: str) -> None:
    """End a step whose work was done by other means. STEP is its name or its number."""
    with place.calls() as calls:
        number = numbered(calls, run, step)
        calls.run(run).complete_step(number, given, reason=reason)
    click.echo(f"step {number} of {run} is completed")


@verb("reenqueue", f"holdfast reenqueue {_ID} ship --reason 'its host is gone'")
@run_argument
@step_argument
@needed_reason_option
@placed
def reenqueue(place: Place, *, run: str, step: str, reason: str) -> None:
    """Take a step from a worker that is gone, and have another one call it. STEP is its name or its number."""
    with place.calls() as calls:
        number = numbered(calls, run, step)
        calls.run(run).reenqueue(number, reason=reason)
    click.echo(f"step {number} of {run} waits for another worker")


@verb("resume-options", f"holdfast resume-options {_ID}")
@run_argument
@json_option
@placed
def resume_options(place: Place, *, run: str, as_json: bool) -> None:
    """What would bring a run on, and who may do that."""
    with place.calls() as calls:
        found = calls.run(run).resume_options()
    print_list(found, OPTIONS, as_json=as_json)


@verb("change-data", f"holdfast change-data {_ID} '{{\"city\": \"Bern\"}}' --reason 'the customer has moved'")
@run_argument
@click.argument("patch", type=JsonObject())
@click.option("--token", default="", help="Of one branch only, as `holdfast show --json` names it.")
@needed_reason_option
@placed
def change_data(place: Place, *, run: str, patch: dict[str, object], token: str, reason: str) -> None:
    """Lay PATCH over the data of a run: objects name by name, null takes a name away."""
    with place.calls() as calls:
        calls.run(run).change_data(patch, reason=reason, token=token)
    click.echo(f"the data of {run} is changed")


@verb("cancel-branch", f"holdfast cancel-branch {_ID} 0/2.1 --reason 'nobody needs it'")
@run_argument
@click.argument("token")
@needed_reason_option
@placed
def cancel_branch(place: Place, *, run: str, token: str, reason: str) -> None:
    """End one of several branches, by its TOKEN, as `holdfast show --json` names it; the others go on without it."""
    with place.calls() as calls:
        calls.run(run).cancel_branch(token, reason=reason)
    click.echo(f"branch {token} of {run} has ended")


@verb("move-back", f"holdfast move-back {_ID} packed --reason 'the wrong parcel'")
@run_argument
@click.argument("save_point", metavar="[SAVE-POINT]", default="")
@needed_reason_option
@placed
def move_back(place: Place, *, run: str, save_point: str, reason: str) -> None:
    """Undo what was done behind a save point, the last one if none is named, and go on from there."""
    with place.calls() as calls:
        calls.run(run).move_back(save_point, reason=reason)
    click.echo(f"{run} goes back to {save_point or 'its last save point'}")


@verb("fail", f"holdfast fail {_ID} --reason 'the supplier is bankrupt'")
@run_argument
@needed_reason_option
@wait_option
@placed
def fail(place: Place, *, run: str, reason: str, wait: timedelta) -> None:
    """Have a run fail as if a step had failed for good: what it did is undone. How it ended is printed."""
    with place.calls() as calls:
        click.echo(calls.run(run).fail(reason, timeout=wait.total_seconds()))


@verb("fork", f"holdfast fork {_ID} 4 --preview", f"holdfast fork {_ID} 4 --reason 'the handler is mended'")
@run_argument
@click.argument("at", type=click.IntRange(1))
@click.option("--preview", is_flag=True, help="Only tell what it would take over, and have done again.")
@click.option("--data", type=JsonObject(), help="Laid over its data like a patch: JSON, @file, or -.")
@click.option("--key", default="", help="Its business key.")
@click.option("--reason", default="", help="Why, for those who read the history; needed unless it is a preview.")
@json_option
@placed
def fork(
    place: Place,
    *,
    run: str,
    at: int,
    preview: bool,
    data: dict[str, object] | None,
    key: str,
    reason: str,
    as_json: bool,
) -> None:
    """Start a new run where this one was after event AT of its history; this one stays as it is. The id of the new one is printed.

    With --preview nothing is started. Exit code 0: it is possible. 1: it is not.
    """
    if not preview and not reason:
        raise ConfigurationError("say why by --reason, or look first by --preview")
    with place.calls() as calls:
        if preview:
            _print_preview(calls.run(run).fork_preview(at), as_json=as_json)
            return
        born = calls.run(run).fork(at, reason=reason, data=data, key=key)
    print_json({"id": str(born.id)}) if as_json else click.echo(born.id)


def _print_preview(found: ForkPreview, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_fields(
            {
                "begins behind event": found.at,
                "problem": found.problem,
                "takes over": ", ".join(found.kept),
                "calls again": ", ".join(f"{each.step} ({each.handler})" for each in found.calls),
                "asks again": ", ".join(found.people),
                "starts again": ", ".join(found.children),
                "waits again": ", ".join(found.waits),
            }
        )
    end(Exit.NO if found.problem else Exit.DONE)
