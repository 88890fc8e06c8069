"""Commands that control a run: cancel, abort, pause, resume, signal; and the one that advances a process."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import click

from standfast.cli.framework import verb
from standfast.cli.options import Duration, Instant, Json, JsonObject, reason_option
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.run_arguments import ID, Run, done_to_run, run_argument, wait_option
from standfast.cli.target import Target, acted, tenant_scope
from standfast.cli.workflows.processes import print_standing
from standfast.cli.workflows.tasks import behalf_option
from standfast.features.runs.pauses.views import ResumeOption, ResumeRequest

OPTIONS: Columns[ResumeOption] = {
    "ACTION": lambda each: each.action,
    "STEP": lambda each: each.step_name,
    "CHOICES": lambda each: ", ".join(each.choices),
    "ROLE": lambda each: each.role,
    "CAPABILITY": lambda each: each.capability,
    "STEP ID": lambda each: each.step_id,
}
REQUESTS: Columns[ResumeRequest] = {
    "AT": lambda each: each.requested_at,
    "BY": lambda each: each.requested_by,
    "TRIGGER": lambda each: each.triggered_by,
    "DONE": lambda each: each.executed_at,
    "REFUSED": lambda each: each.error_message,
    "REASON": lambda each: each.reason,
    "ID": lambda each: each.id,
}
data_option = click.option(
    "--data", type=JsonObject(), help="What conditions find under `resume` from then on: JSON, @file, or -."
)
repeat_option = click.option("--id", "request_id", default="", help="Makes the call safe to repeat.")


@verb("cancel", f"standfast cancel {ID} --reason 'ordered twice'")
@run_argument
@reason_option
@wait_option
@done_to_run
def cancel(run: Run, *, reason: str, wait: timedelta) -> str:
    """Cancel a run and run its compensations, which takes a worker; print its final status.

    Exit code 7 on a timeout: the cancellation continues, and `standfast watch` shows it.
    """
    return run.cancel(reason, timeout=wait.total_seconds())


@verb("abort", f"standfast abort {ID} --reason 'it cannot be undone'")
@run_argument
@reason_option
@wait_option
@done_to_run
def abort(run: Run, *, reason: str, wait: timedelta) -> str:
    """Abort a run immediately, without compensations."""
    return run.abort(reason, timeout=wait.total_seconds())


@verb("pause", f"standfast pause {ID} --reason audit", f"standfast pause {ID} --for 2h --clock stand_still")
@run_argument
@reason_option
@click.option("--clock", type=click.Choice(["run_on", "stand_still"]), help="What becomes of its timers meanwhile.")
@click.option("--until", type=Instant(), help="When it resumes.")
@click.option("--for", "duration", type=Duration(), help="After how long it resumes.")
@done_to_run
def pause(
    run: Run,
    *,
    reason: str,
    clock: Literal["run_on", "stand_still"] | None,
    until: datetime | None,
    duration: timedelta | None,
) -> str:
    """Pause a run: running handlers finish, and later steps are held."""
    run.pause(reason, clock=clock, until=until or duration)
    return f"{run.id} is paused"


@verb("resume", f"standfast resume {ID}", f"standfast resume {ID} --override --reason 'the director said so'")
@run_argument
@reason_option
@data_option
@click.option("--override", is_flag=True, help="Go past an open question.")
@click.option("--task", help="Which one, if there are several.")
@repeat_option
@done_to_run
def resume(
    run: Run, *, reason: str, data: dict[str, object] | None, override: bool, task: str | None, request_id: str
) -> str:
    """Resume a run that is paused or waits for an operator."""
    run.resume(reason, data=data, override=override, task=task, triggered_by_id=request_id)
    return f"{run.id} goes on"


@verb("resume-options", f"standfast resume-options {ID}")
@run_argument
@json_option
@tenant_scope
def resume_options(place: Target, *, run: str, as_json: bool) -> None:
    """List the actions that would resume a run, with the required rights."""
    with place.calls() as calls:
        found = calls.run(run).resume_options()
    print_list(found, OPTIONS, as_json=as_json)


@verb("request-resume", f"standfast request-resume {ID} --reason 'tonight is early enough'")
@run_argument
@reason_option
@data_option
@repeat_option
@json_option
@tenant_scope
def request_resume(
    place: Target, *, run: str, reason: str, data: dict[str, object] | None, request_id: str, as_json: bool
) -> None:
    """Request that a worker resumes a run, at its next check of requests.

    `standfast resume-requests` prints the outcome. `standfast resume` does not wait for a worker.
    """
    with place.calls() as calls:
        made = calls.run(run).request_resume(reason, data=data, triggered_by_id=request_id)
    print_json(made) if as_json else print_fields({head.lower(): value(made) for head, value in REQUESTS.items()})


@verb("resume-requests", f"standfast resume-requests {ID} --json")
@run_argument
@json_option
@tenant_scope
def resume_requests(place: Target, *, run: str, as_json: bool) -> None:
    """List all resume requests of a run with their outcomes, refused ones included."""
    with place.calls() as calls:
        found = calls.run(run).resume_requests()
    print_list(found, REQUESTS, as_json=as_json)


@verb("signal", f"standfast signal {ID} paid --data '{{\"amount\": 5}}'")
@run_argument
@click.argument("name")
@click.option("--data", type=Json(), help="What comes with it: JSON, @file, or -.")
@click.option("--id", "command_id", default="", help="Makes the call safe to repeat.")
@done_to_run
def signal(run: Run, *, name: str, data: object, command_id: str) -> str:
    """Send a signal to a run; a step that waits for it continues."""
    run.signal(name, data, command_id=command_id)
    return f"signal {name!r} sent to {run.id}"


@verb("advance", f'standfast advance {ID} approved --input \'{{"notes": "fine"}}\' --as bob --role approver')
@run_argument
@click.argument("event")
@click.option("--input", "given", type=JsonObject(), help="What the form of the step asks for: JSON, @file, or -.")
@click.option("--comment", default="", help="A comment for the trail.")
@behalf_option
@click.option("--expect-version", type=int, help="Do nothing if it was changed since this version.")
@click.option("--wait", type=Duration(), default="0s", help="How long to wait for automatic steps that follow.")
@json_option
@acted
def advance(  # noqa: PLR0913 - what can be said of it
    place: Target,
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
    """Advance a process from its current step by an event, with the data of its form."""
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
