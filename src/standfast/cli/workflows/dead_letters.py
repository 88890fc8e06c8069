"""`standfast dlq` and `standfast requeue`: inspect, requeue and discard dead letters."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from standfast.calls.operator_views import DeadLetter
from standfast.cli.framework import complain, verb, verbs
from standfast.cli.options import Json, listed, number_after, page_of, reason_option
from standfast.cli.output import Columns, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.cli.workflows.batches import print_batch
from standfast.errors import ConfigurationError
from standfast.features.operations.dead_letter_groups import LetterGroup
from standfast.kernel.row_kinds.steps import DeadLetterSource


class Chosen(TypedDict):
    """The selected dead letters, and the options of a requeue."""

    letter: int | None
    given: object
    cause: str
    reason: str
    as_json: bool


LISTING: Columns[DeadLetter] = {
    "ID": lambda each: each.id,
    "SOURCE": lambda each: each.source,
    "WORKFLOW": lambda each: each.definition,
    "RUN": lambda each: each.instance,
    "NAME": lambda each: each.name,
    "CALLS": lambda each: each.attempts,
    "REASON": lambda each: each.reason,
    "ERROR": lambda each: each.error,
    "AT": lambda each: each.created_at,
}

GROUPS: Columns[LetterGroup] = {
    "FINGERPRINT": lambda each: each.fingerprint,
    "COUNT": lambda each: each.count,
    "SOURCE": lambda each: each.source,
    "WORKFLOW": lambda each: each.definition,
    "NAME": lambda each: each.name,
    "REASON": lambda each: each.reason,
    "ERROR": lambda each: each.error,
    "LAST": lambda each: each.last_at,
}

letter_argument = click.argument("letter", type=int, metavar="LETTER")
chosen_argument = click.argument("letter", type=int, metavar="[LETTER]", default=None)
input_option = click.option("--input", "given", type=Json(), help="Another input for a step: JSON, @file, or -.")
cause_option = click.option(
    "--cause",
    metavar="FINGERPRINT",
    default="",
    help="All letters of one cause instead, as a batch; `dlq groups` tells it.",
)


@verbs("dlq")
def dlq() -> None:
    """Inspect, requeue and discard dead letters.

    --cause selects all dead letters of one cause. `standfast batch begin requeue` selects all of a definition, or those
    in --letter.
    """


@dlq.command("list", examples=["standfast dlq list", "standfast dlq list --source step --definition order --json"])
@click.option("--run", "instance", help="Only those of this run.")
@click.option("--definition", default="", help="Only those of this workflow.")
@click.option(
    "--source",
    type=click.Choice(["step", "compensation", "effect", "timer", "inbox"]),
    help="Only dead letters of this kind.",
)
@click.option("--key", default="", help="Only those of the run with this business key.")
@listed
@tenant_scope
def list_letters(
    place: Target,
    *,
    instance: str | None,
    definition: str,
    source: DeadLetterSource | None,
    key: str,
    as_json: bool,
    limit: int,
    after: str,
) -> None:
    """List dead letters, oldest first."""
    with place.calls() as calls:
        found = calls.dead_letters.list(
            instance=instance,
            definition=definition,
            source=source,
            key=key,
            after=number_after(after),
            limit=limit + 1,
        )
        if definition and not found:
            calls.dead_letters.groups(definition=definition)  # Reports an unknown workflow.
    shown, more = page_of(found, limit, lambda each: each.id)
    print_list(shown, LISTING, as_json=as_json, after=more)


@dlq.command("groups", examples=["standfast dlq groups", "standfast dlq groups --definition order --json"])
@click.option("--definition", default="", help="Only those of this workflow.")
@json_option
@tenant_scope
def group_letters(place: Target, *, definition: str, as_json: bool) -> None:
    """Group dead letters by error message, without numbers, ids and quoted values; the largest group first."""
    with place.calls() as calls:
        found = calls.dead_letters.groups(definition=definition)
    print_list(found.items, GROUPS, as_json=as_json)
    if not found.is_complete:
        complain("only the oldest letters were looked at; there are more")


@dlq.command("show", examples=["standfast dlq show 7"])
@letter_argument
@json_option
@tenant_scope
def show_letter(place: Target, *, letter: int, as_json: bool) -> None:
    """Show a dead letter, with its input."""
    with place.calls() as calls:
        found = calls.dead_letters.get(letter)
    if as_json:
        print_json(found)
        return
    told = {name.lower(): value(found) for name, value in LISTING.items()}
    print_fields({**told, "type": found.type, "payload": found.payload, "key": found.key})


@dlq.command(
    "requeue",
    examples=[
        "standfast dlq requeue 7",
        "standfast dlq requeue 7 --input '{\"row\": 7}'",
        "standfast dlq requeue --cause 5c1e0b7a9d3f2e64 --reason 'the bank is back'",
    ],
)
@chosen_argument
@input_option
@cause_option
@reason_option
@json_option
@tenant_scope
def requeue_letter(place: Target, **given: Unpack[Chosen]) -> None:
    """Requeue a dead letter; for a compensation, try to undo the step again."""
    _requeue(place, given)


@verb("requeue", "standfast requeue 7", "standfast requeue 7 --input @row.json")
@chosen_argument
@input_option
@cause_option
@reason_option
@json_option
@tenant_scope
def requeue(place: Target, **given: Unpack[Chosen]) -> None:
    """Requeue a dead letter; same as `standfast dlq requeue`."""
    _requeue(place, given)


def _requeue(place: Target, given: Chosen) -> None:
    letter = _chosen(given["letter"], given["cause"], reason=given["reason"], as_json=given["as_json"])
    if letter is None and given["given"] is not None:
        raise ConfigurationError("--input is for one LETTER; leave it out with --cause")
    with place.calls() as calls:
        if letter is None:
            made = calls.batches.begin("requeue", cause=given["cause"], reason=given["reason"])
        elif calls.dead_letters.get(letter).source == "compensation":
            calls.dead_letters.retry_compensation(letter)
        else:
            calls.dead_letters.requeue(letter, given["given"])
    print_batch(made, as_json=given["as_json"]) if letter is None else click.echo(
        f"dead letter {letter} is back at work"
    )


@dlq.command(
    "discard",
    examples=["standfast dlq discard 7", "standfast dlq discard --cause 5c1e0b7a9d3f2e64 --reason 'sent by hand'"],
)
@chosen_argument
@cause_option
@reason_option
@json_option
@tenant_scope
def discard(place: Target, *, letter: int | None, cause: str, reason: str, as_json: bool) -> None:
    """Discard a dead letter. A step's dead letter goes with its run: requeue it, or cancel or abort the run."""
    chosen = _chosen(letter, cause, reason=reason, as_json=as_json)
    with place.calls() as calls:
        if chosen is None:
            made = calls.batches.begin("discard", cause=cause, reason=reason)
        else:
            calls.dead_letters.discard(chosen)
    print_batch(made, as_json=as_json) if chosen is None else click.echo(f"dead letter {chosen} is forgotten")


def _chosen(letter: int | None, cause: str, *, reason: str, as_json: bool) -> int | None:
    """Return the selected dead letter; None if --cause is given."""
    if (letter is None) == (not cause):
        raise ConfigurationError(
            "say which: either the number of a LETTER, or --cause FINGERPRINT; `standfast dlq groups` tells both"
        )
    if letter is not None and (reason or as_json):
        raise ConfigurationError("--reason and --json are about a batch; leave them out, or name a --cause")
    return letter
