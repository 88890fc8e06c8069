"""`standfast batch`: one operation on many runs, with the outcome of each."""

from __future__ import annotations

from datetime import timedelta

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verbs
from standfast.cli.options import Duration, Json, listed, number_after, page_of, reason_option
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.expressions.model.characters import visible
from standfast.features.batches.views import Batch, BatchItem, BatchVerb, ItemStatus

LISTING: Columns[Batch] = {
    "ID": lambda each: each.id,
    "VERB": lambda each: each.verb,
    "STATUS": lambda each: each.status,
    "TOTAL": lambda each: each.total,
    "WAITING": lambda each: each.counts.waiting,
    "ACCEPTED": lambda each: each.counts.accepted,
    "DONE": lambda each: each.counts.done,
    "FAILED": lambda each: each.counts.failed,
    "REFUSED": lambda each: each.counts.refused,
    "DROPPED": lambda each: each.counts.dropped,
    "REASON": lambda each: each.reason,
}
ITEMS: Columns[BatchItem] = {
    "NUMBER": lambda each: each.number,
    "RUN": lambda each: each.run,
    "LETTER": lambda each: each.letter,
    "STATUS": lambda each: each.status,
    "DETAIL": lambda each: each.detail,
}


@verbs("batch")
def batch() -> None:
    """Apply one operation to many runs, in the background."""


@batch.command(
    "begin",
    examples=[
        "standfast batch begin cancel --definition order --status running --reason 'the shop closes' --rate 10",
        "standfast batch begin requeue --definition import",
        "standfast batch begin discard --cause 5c1e0b7a9d3f2e64 --reason 'sent by hand'",
        'standfast batch begin start --definition order --inputs \'[{"n": 1}, {"n": 2}]\'',
    ],
)
@click.argument(
    "verb", type=click.Choice(["cancel", "abort", "pause", "resume", "retry", "requeue", "discard", "start"])
)
@click.argument("runs", nargs=-1)
@click.option(
    "--letter", "letters", type=int, multiple=True, help="A dead letter that is requeued or discarded; repeatable."
)
@click.option("--inputs", type=Json(), help="For start: a list with the input of each run; JSON, @file, or -.")
@click.option("--definition", default="", help="The workflow to start, or whose runs or dead letters to select.")
@click.option("--version", default="", help="Which version of it.")
@click.option(
    "--status", multiple=True, help="Which runs of it; those that have not ended if none is named. Repeatable."
)
@click.option(
    "--cause", metavar="FINGERPRINT", default="", help="All dead letters of one cause; `dlq groups` tells it."
)
@reason_option
@click.option("--rate", type=float, default=0.0, help="How many are tried in a second at most.")
@click.option(
    "--follow",
    type=Duration(),
    default="1h",
    show_default=True,
    help="How long to track the outcome of submitted items.",
)
@click.option("--id", "batch_id", default="", help="Makes the call safe to repeat.")
@json_option
@tenant_scope
def begin_batch(  # noqa: PLR0913 - the options of a command
    place: Target,
    *,
    verb: BatchVerb,
    runs: tuple[str, ...],
    letters: tuple[int, ...],
    inputs: object,
    definition: str,
    version: str,
    status: tuple[str, ...],
    cause: str,
    reason: str,
    rate: float,
    follow: timedelta,
    batch_id: str,
    as_json: bool,
) -> None:
    """Apply VERB to these RUNS, or to those of a definition; workers execute it, and `standfast batch show` prints the progress."""
    with place.calls() as calls:
        found = calls.batches.begin(
            verb,
            runs or None,
            letters=letters or None,
            inputs=inputs,  # type: ignore[arg-type]  # The engine says if it is no list.
            definition=definition,
            version=version,
            status=status or None,
            cause=cause,
            reason=reason,
            per_second=rate,
            follow=follow,
            batch_id=batch_id,
        )
    print_batch(found, as_json=as_json)
    if not found.total:
        what = f"of {definition!r}" if definition else "that was named"
        click.echo(f"there is nothing {visible(what)} to {verb}; see whether the name is right", err=True)


@batch.command("list", examples=["standfast batch list"])
@listed
@tenant_scope
def list_batches(place: Target, *, as_json: bool, limit: int, after: str) -> None:
    """List the batches, newest first."""
    with place.calls() as calls:
        found = calls.batches.list(after=calls.batches.get(after) if after else None, limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@batch.command("show", examples=["standfast batch show 0193a2b4-0000-7000-8000-000000000001"])
@click.argument("batch_id", metavar="ID")
@json_option
@tenant_scope
def show_batch(place: Target, *, batch_id: str, as_json: bool) -> None:
    """Show the progress of a batch.

    Exit code 0: it is active, or every item succeeded. 1: it has ended, and some items failed.
    """
    with place.calls() as calls:
        found = calls.batches.get(batch_id)
    print_batch(found, as_json=as_json)
    end(Exit.DONE if found.status == "running" or found.is_clean else Exit.NO)


@batch.command("items", examples=["standfast batch items 0193a2b4-0000-7000-8000-000000000001 --status failed"])
@click.argument("batch_id", metavar="ID")
@click.option(
    "--status",
    type=click.Choice(["waiting", "accepted", "done", "failed", "refused", "dropped"]),
    help="Only those.",
)
@listed
@tenant_scope
def list_items(
    place: Target, *, batch_id: str, status: ItemStatus | None, as_json: bool, limit: int, after: str
) -> None:
    """List the items with their outcomes."""
    with place.calls() as calls:
        found = calls.batches.items(batch_id, status=status, after=number_after(after), limit=limit + 1)
    shown, more = page_of(found, limit, lambda each: each.number)
    print_list(shown, ITEMS, as_json=as_json, after=more)


@batch.command(
    "cancel", examples=["standfast batch cancel 0193a2b4-0000-7000-8000-000000000001 --reason 'the wrong ones'"]
)
@click.argument("batch_id", metavar="ID")
@reason_option
@json_option
@tenant_scope
def cancel_batch(place: Target, *, batch_id: str, reason: str, as_json: bool) -> None:
    """Cancel a batch: the remaining items are skipped; completed items stay as they are."""
    with place.calls() as calls:
        print_batch(calls.batches.cancel(batch_id, reason), as_json=as_json)


def print_batch(found: Batch, *, as_json: bool) -> None:
    """Print the progress of a batch, as JSON or as text."""
    if as_json:
        print_json(found)
        return
    told = {head.lower(): value(found) for head, value in LISTING.items()}
    print_fields(
        {**told, "cause": found.cause, "owner": found.owner, "begun": found.created_at, "ended": found.ended_at}
    )
