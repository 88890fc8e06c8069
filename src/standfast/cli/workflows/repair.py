"""Commands that repair a run: retry, skip or complete steps, change data, roll back, fail and fork."""

from __future__ import annotations

from datetime import timedelta

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.options import Json, JsonObject, needed_reason_option
from standfast.cli.output import json_option, print_fields, print_json
from standfast.cli.run_arguments import ID, Run, done_to_run, run_argument, step_argument, wait_option
from standfast.cli.target import Target, tenant_scope
from standfast.errors import ConfigurationError
from standfast.features.runs.fork import ForkPreview


@verb("retry", f"standfast retry {ID} charge --reason 'the bank is back'")
@run_argument
@step_argument
@needed_reason_option
@click.option("--input", "given", type=Json(), help="Another input for a failed step: JSON, @file, or -.")
@done_to_run
def retry(run: Run, *, step: int, reason: str, given: object) -> str:
    """Retry a step now that failed or waits for its next attempt. STEP is its name or its number."""
    run.retry(step, reason=reason, input=given)
    return f"step {step} of {run.id} is called again"


@verb("skip", f"standfast skip {ID} notify --reason 'told by phone'")
@run_argument
@step_argument
@needed_reason_option
@click.option("--outcome", default="", help="By which outcome it is left, if not as if it had ended well.")
@done_to_run
def skip(run: Run, *, step: int, reason: str, outcome: str) -> str:
    """Skip a step that has not ended, without its work. STEP is its name or its number."""
    run.skip(step, reason=reason, outcome=outcome)
    return f"step {step} of {run.id} is skipped"


@verb("complete", f"standfast complete {ID} ship --output '{{\"parcel\": 77}}' --reason 'confirmed by phone'")
@run_argument
@step_argument
@click.option("--output", "given", type=Json(), help="What its handler would have answered: JSON, @file, or -.")
@needed_reason_option
@done_to_run
def complete(run: Run, *, step: int, given: object, reason: str) -> str:
    """Complete a step whose work was done by other means. STEP is its name or its number."""
    run.complete_step(step, given, reason=reason)
    return f"step {step} of {run.id} is completed"


@verb("reenqueue", f"standfast reenqueue {ID} ship --reason 'its host is gone'")
@run_argument
@step_argument
@needed_reason_option
@done_to_run
def reenqueue(run: Run, *, step: int, reason: str) -> str:
    """Take a step from a lost worker, and queue it again. STEP is its name or its number."""
    run.reenqueue(step, reason=reason)
    return f"step {step} of {run.id} waits for another worker"


@verb("change-data", f"standfast change-data {ID} '{{\"city\": \"Bern\"}}' --reason 'the customer has moved'")
@run_argument
@click.argument("patch", type=JsonObject())
@click.option("--token", default="", help="Of one branch only, as `standfast show --json` names it.")
@needed_reason_option
@done_to_run
def change_data(run: Run, *, patch: dict[str, object], token: str, reason: str) -> str:
    """Apply a JSON merge patch to a run's data."""
    run.change_data(patch, reason=reason, token=token)
    return f"the data of {run.id} is changed"


@verb("cancel-branch", f"standfast cancel-branch {ID} 0/2.1 --reason 'not needed'")
@run_argument
@click.argument("token")
@needed_reason_option
@done_to_run
def cancel_branch(run: Run, *, token: str, reason: str) -> str:
    """Cancel one of several branches, by its TOKEN in `standfast show --json`; the others continue."""
    run.cancel_branch(token, reason=reason)
    return f"branch {token} of {run.id} has ended"


@verb("move-back", f"standfast move-back {ID} packed --reason 'the wrong parcel'")
@run_argument
@click.argument("save_point", metavar="[SAVE-POINT]", default="")
@needed_reason_option
@done_to_run
def move_back(run: Run, *, save_point: str, reason: str) -> str:
    """Roll a run back to its last save point, or to the one given, and continue from there."""
    run.move_back(save_point, reason=reason)
    return f"{run.id} goes back to {save_point or 'its last save point'}"


@verb("fail", f"standfast fail {ID} --reason 'the supplier is bankrupt'")
@run_argument
@needed_reason_option
@wait_option
@done_to_run
def fail(run: Run, *, reason: str, wait: timedelta) -> str:
    """Fail a run, with its compensations, as if a step had failed permanently. Its final status is printed."""
    return run.fail(reason, timeout=wait.total_seconds())


@verb("fork", f"standfast fork {ID} 4 --preview", f"standfast fork {ID} 4 --reason 'the handler is mended'")
@run_argument
@click.argument("at", type=click.IntRange(1))
@click.option("--preview", is_flag=True, help="Only report what it would take over, and run again.")
@click.option("--data", type=JsonObject(), help="Laid over its data like a patch: JSON, @file, or -.")
@click.option("--key", default="", help="Its business key.")
@click.option("--reason", default="", help="The reason, for the history; required without --preview.")
@json_option
@tenant_scope
def fork(
    place: Target,
    *,
    run: str,
    at: int,
    preview: bool,
    data: dict[str, object] | None,
    key: str,
    reason: str,
    as_json: bool,
) -> None:
    """Start a new run from the state of this one after event AT of its history; this one is unchanged.

    The new id is printed.

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
