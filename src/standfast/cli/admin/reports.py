"""`standfast report` and `standfast seals`: reports over a period, and proofs that a history was not rewritten."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import complain, end, verb, verbs
from standfast.cli.options import Instant
from standfast.cli.output import Columns, cell, json_option, print_fields, print_json, print_list
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import NotFoundError
from standfast.features.operations.reports import PersonReport, Spread, StepReport

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
STEPS: Columns[StepReport] = {
    "NODE": lambda each: each.node,
    "ENDED": lambda each: each.took.count,
    "OPEN": lambda each: each.open,
    "MEDIAN": lambda each: _long(each.took.median),
    "P90": lambda each: _long(each.took.p90),
    "TOTAL": lambda each: _long(each.total),
}
PEOPLE: Columns[PersonReport] = {
    "PERSON": lambda each: each.person,
    "DECIDED": lambda each: each.decided,
    "OUTCOMES": lambda each: ", ".join(f"{name} {count}" for name, count in each.outcomes.items()),
    "OPEN": lambda each: each.open,
    "MEDIAN": lambda each: _long(each.took.median),
}


class Day(Instant):
    """An instant, or a day, which begins at midnight in UTC."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse an instant or a day."""
        return super().convert(f"{value}T00:00:00Z" if _DAY.fullmatch(str(value)) else value, param, ctx)


@verb(
    "report",
    "standfast report invoice",
    "standfast report order --since 2026-01-01 --until 2026-04-01T00:00:00+02:00 --json",
)
@click.argument("definition")
@click.option("--version", default="", help="Only runs of this version.")
@click.option(
    "--since", type=Day(), help="Runs that began then or later; thirty days before the end if it is not given."
)
@click.option("--until", type=Day(), help="And before then; now if it is not given.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=10_000, help="How many runs are counted at most.")
@json_option
@tenant_scope
def report(
    place: Target,
    *,
    definition: str,
    version: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """Report durations, waiting times, decisions and retries of a workflow's runs or a type's documents."""
    with place.calls() as calls:
        found = calls.reports.of(definition, version=version, since=since, until=until, limit=limit)
    if as_json:
        print_json(found)
        return
    print_fields(
        {
            "workflow": found.definition,
            "period": f"{found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC",
            "runs": f"{found.runs}{' (the newest; there are more)' if found.is_partial else ''}",
            "finished": found.finished,
            "took": _told(found.cycle),
            "done twice": f"{found.reworked} ({found.rework_rate:.0%})",
        }
    )
    click.echo()
    print_list(found.steps, STEPS, as_json=False)
    click.echo()
    print_list(found.people, PEOPLE, as_json=False)


def _told(took: Spread) -> str:
    return f"median {_long(took.median)}, nine of ten {_long(took.p90)}, longest {_long(took.longest)}"


def _long(seconds: float) -> str:
    """Format a duration."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


_STRETCH = 1000


@verbs("seals")
def seals() -> None:
    """Create and verify seals of histories."""


@seals.command("add", examples=["standfast seals add"])
@json_option
@acted
def add_seals(place: Target, *, as_json: bool) -> None:
    """Seal every history of the tenant that has grown since its last seal."""
    count, checked, cursor = 0, 0, None
    with place.calls() as calls:
        while True:
            page = calls.seals.seal(cursor=cursor, limit=_STRETCH)
            count, checked, cursor = count + page.sealed, checked + page.checked, page.next
            complain(f"{checked} histories looked at, {count} sealed")
            if cursor is None:
                break
        head = calls.seals.head()
    if as_json:
        print_json({"sealed": count, "checked": checked, "head": head})
    else:
        click.echo(f"{count} sealed" + ("" if head is None else f"; the last seal is {head.number} {head.link}"))


@seals.command("verify", examples=["standfast seals verify", "standfast seals verify --head 4711 --link 9f86d0…"])
@click.option("--head", type=click.IntRange(1), help="The number of a seal that was kept elsewhere.")
@click.option("--link", default="", help="Its link.")
@json_option
@tenant_scope
def verify_seals(place: Target, *, head: int | None, link: str, as_json: bool) -> None:
    """Verify all seals of the tenant. Exit code 1: a seal is missing, or a history differs."""
    broken: list[str] = []
    checked, gone, after = 0, 0, 0
    with place.calls() as calls:
        while True:
            page = calls.seals.verify(after=after, limit=_STRETCH)
            broken += page.broken
            checked, gone = checked + page.checked, gone + page.gone
            complain(f"{checked} seals looked at, {len(broken)} findings")
            if page.next is None:
                break
            after = page.next
        if head is not None and not calls.seals.holds(head, link):
            broken.append(f"seal {head} is not the one that was kept")
    if as_json:
        print_json({"is_sound": not broken, "checked": checked, "gone": gone, "broken": broken})
    else:
        for each in broken:
            click.echo(f"✗ {cell(each)}")
        if not broken:
            click.echo(f"{checked} seals hold; {gone} are of what was deleted")
    end(Exit.NO if broken else Exit.DONE)


@seals.command("head", examples=["standfast seals head --json"])
@json_option
@tenant_scope
def show_head(place: Target, *, as_json: bool) -> None:
    """Show the last seal; store its number and link where database users cannot write."""
    with place.calls() as calls:
        found = calls.seals.head()
    if found is None:
        raise NotFoundError("seal", "head", hint="nothing is sealed yet: `standfast seals add`")
    if as_json:
        print_json(found)
    else:
        print_fields({name: getattr(found, name) for name in found.__struct_fields__})
