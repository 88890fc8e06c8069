"""What operators do to a run: stop it, hold it, let it go on, mend its steps; and how a process is advanced."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal

import click

from holdfast.app.faces.blocking import Calls
from holdfast.cli.frame import verb
from holdfast.cli.options import Duration, Instant, Json, JsonObject, needed_reason_option, reason_option
from holdfast.cli.output import json_option
from holdfast.cli.place import Place, placed
from holdfast.cli.processes import print_standing
from holdfast.cli.runs import run_argument
from holdfast.cli.tasks import behalf_option
from holdfast.errors import NotFoundError
from holdfast.expressions.suggestions import suggestion

_ID: Final = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"

wait_option = click.option(
    "--wait", type=Duration(), default="30s", show_default=True, help="How long to wait for its end; it goes on."
)
step_argument = click.argument("step", metavar="STEP")


@verb("cancel", f"holdfast cancel {_ID} --reason 'ordered twice'")
@run_argument
@reason_option
@wait_option
@placed
def cancel(place: Place, *, run: str, reason: str, wait: timedelta) -> None:
    """Stop a run and undo what it did, which takes a worker; how it ended is printed.

    Exit code 7 if that is not done in time: it goes on, and `holdfast watch` shows it.
    """
    with place.calls() as calls:
        click.echo(calls.run(run).cancel(reason, timeout=wait.total_seconds()))


@verb("abort", f"holdfast abort {_ID} --reason 'it cannot be undone'")
@run_argument
@reason_option
@wait_option
@placed
def abort(place: Place, *, run: str, reason: str, wait: timedelta) -> None:
    """End a run at once; nothing is undone."""
    with place.calls() as calls:
        click.echo(calls.run(run).abort(reason, timeout=wait.total_seconds()))


@verb("pause", f"holdfast pause {_ID} --reason audit", f"holdfast pause {_ID} --for 2h --clock stand_still")
@run_argument
@reason_option
@click.option("--clock", type=click.Choice(["run_on", "stand_still"]), help="What becomes of its timers meanwhile.")
@click.option("--until", type=Instant(), help="When it goes on by itself.")
@click.option("--for", "duration", type=Duration(), help="After how long it goes on by itself.")
@placed
def pause(
    place: Place,
    *,
    run: str,
    reason: str,
    clock: Literal["run_on", "stand_still"] | None,
    until: datetime | None,
    duration: timedelta | None,
) -> None:
    """Have a run wait: handlers that are running finish, and what follows from them is held."""
    with place.calls() as calls:
        calls.run(run).pause(reason, clock=clock, until=until or duration)
    click.echo(f"{run} is paused")


@verb("resume", f"holdfast resume {_ID}", f"holdfast resume {_ID} --override --reason 'the director said so'")
@run_argument
@reason_option
@click.option("--data", type=JsonObject(), help="What conditions find under `resume` from then on: JSON, @file, or -.")
@click.option("--override", is_flag=True, help="Go past an open question.")
@click.option("--task", help="Which one, if there are several.")
@click.option("--id", "request_id", default="", help="Makes the call safe to repeat.")
@placed
def resume(
    place: Place,
    *,
    run: str,
    reason: str,
    data: dict[str, object] | None,
    override: bool,
    task: str | None,
    request_id: str,
) -> None:
    """Let a run go on that is paused, or waits for an operator."""
    with place.calls() as calls:
        calls.run(run).resume(reason, data=data, override=override, task=task, triggered_by_id=request_id)
    click.echo(f"{run} goes on")


@verb("retry", f"holdfast retry {_ID} charge --reason 'the bank is back'")
@run_argument
@step_argument
@needed_reason_option
@click.option("--input", "given", type=Json(), help="Another input for a step that gave up: JSON, @file, or -.")
@placed
def retry(place: Place, *, run: str, step: str, reason: str, given: object) -> None:
    """Call the handler of a step now, which gave up or waits for its next call. STEP is its name or its number."""
    with place.calls() as calls:
        number = numbered(calls, run, step)
        calls.run(run).retry(number, reason=reason, input=given)
    click.echo(f"step {number} of {run} is called again")


@verb("skip", f"holdfast skip {_ID} notify --reason 'told by phone'")
@run_argument
@step_argument
@needed_reason_option
@click.option("--outcome", default="", help="By which outcome it is left, if not as if it had ended well.")
@placed
def skip(place: Place, *, run: str, step: str, reason: str, outcome: str) -> None:
    """Go on behind a step that has not ended, without its work. STEP is its name or its number."""
    with place.calls() as calls:
        number = numbered(calls, run, step)
        calls.run(run).skip(number, reason=reason, outcome=outcome)
    click.echo(f"step {number} of {run} is skipped")


@verb("signal", f"holdfast signal {_ID} paid --data '{{\"amount\": 5}}'")
@run_argument
@click.argument("name")
@click.option("--data", type=Json(), help="What comes with it: JSON, @file, or -.")
@click.option("--id", "command_id", default="", help="Makes the call safe to repeat.")
@placed
def signal(place: Place, *, run: str, name: str, data: object, command_id: str) -> None:
    """Tell a run that something happened; a step that waits for it goes on."""
    with place.calls() as calls:
        calls.run(run).signal(name, data, command_id=command_id)
    click.echo(f"{run} was told {name!r}")


@verb("advance", f'holdfast advance {_ID} approved --input \'{{"notes": "fine"}}\' --as bob --role approver')
@run_argument
@click.argument("event")
@click.option("--input", "given", type=JsonObject(), help="What the form of the step asks for: JSON, @file, or -.")
@click.option("--comment", default="", help="A word for those who read the trail.")
@behalf_option
@click.option("--expect-version", type=int, help="Do nothing if it was changed since this version.")
@click.option("--wait", type=Duration(), default="0s", help="How long to wait for automatic steps that follow.")
@json_option
@placed
def advance(  # noqa: PLR0913 - what can be said of it
    place: Place,
    *,
    run: str,
    event: str,
    given: dict[str, object] | None,
    comment: str,
    on_behalf_of: str,
    expect_version: int | None,
    wait: timedelta,
    as_json: bool,
) -> None:
    """Leave the current step of a process by an event, with what its form asks for."""
    with place.calls() as calls:
        told = calls.processes.advance(
            run,
            event,
            given,
            comment=comment,
            on_behalf_of=on_behalf_of,
            expected_version=expect_version,
            patience=wait,
        )
    print_standing(told, as_json=as_json)


def numbered(calls: Calls, run: str, step: str) -> int:
    """The number of a step that is given by number, or by name: then its last visit."""
    if step.isascii() and step.isdecimal():
        return int(step)
    steps = calls.run(run).steps()
    found = [each.number for each in steps if each.name == step]
    if not found:
        names = dict.fromkeys(each.name for each in steps)
        told = f"so far it has {', '.join(names) or 'none'}{suggestion(step, names)}"
        raise NotFoundError("step", step, hint=told)
    return found[-1]
