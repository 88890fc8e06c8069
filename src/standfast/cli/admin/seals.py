"""`standfast seals`: what tells later whether anybody rewrote a history."""

from __future__ import annotations

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import complain, end, verbs
from standfast.cli.output import cell, json_option, print_fields, print_json
from standfast.cli.target import Target, acted, tenant_scope
from standfast.errors import NotFoundError

_STRETCH = 1000


@verbs("seals")
def seals() -> None:
    """Seals: each says how far a history went, and what it was until then."""


@seals.command("add", examples=["standfast seals add"])
@json_option
@acted
def add_seals(place: Target, *, as_json: bool) -> None:
    """Seal every history of the tenant that has grown since it was sealed last."""
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
    """Whether all seals of the tenant are there, and all histories as they were sealed. Exit code 1: something is not."""
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
    """The last seal; keep its number and link where nobody who can write the database can write."""
    with place.calls() as calls:
        found = calls.seals.head()
    if found is None:
        raise NotFoundError("seal", "head", hint="nothing is sealed yet: `standfast seals add`")
    if as_json:
        print_json(found)
    else:
        print_fields({name: getattr(found, name) for name in found.__struct_fields__})
