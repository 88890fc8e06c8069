"""`standfast docs rounds`, `links` and `choices`: what a document went through, with whom it has to do, and why it went where it went."""

from __future__ import annotations

from standfast.cli.documents.documents import docs, id_argument, type_argument
from standfast.cli.options import listed, page_behind
from standfast.cli.output import Columns, cell, print_list
from standfast.cli.target import Target, tenant_scope
from standfast.features.documents.content.views import (
    AskedCondition,
    DocumentChoice,
    DocumentLink,
    DocumentRound,
)

__all__ = ["docs"]

ROUNDS: Columns[DocumentRound] = {
    "ROUND": lambda each: each.round,
    "STATUS": lambda each: each.status,
    "FROM": lambda each: each.started_at,
    "UNTIL": lambda each: each.completed_at,
}
LINKS: Columns[DocumentLink] = {
    "HOW": lambda each: each.how,
    "TYPE": lambda each: each.type,
    "ID": lambda each: each.id,
    "FIELD": lambda each: each.field,
    "STEP": lambda each: each.step or None,
    "AT": lambda each: each.at,
}
CHOICES: Columns[DocumentChoice] = {
    "STEP": lambda each: each.step,
    "NODE": lambda each: each.node,
    "OUTCOME": lambda each: each.outcome,
    "TO": lambda each: each.to,
    "ASKED": lambda each: "; ".join(map(_answered, each.asked)),
    "AT": lambda each: each.at,
}


def _answered(asked: AskedCondition) -> str:
    """What was asked, and what came out."""
    return f"{asked.expression} → {asked.error or cell(asked.result)}"


@docs.command("rounds", examples=["standfast docs rounds invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_rounds(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """The rounds of a document: its ways from a status to its rest, the first one first."""
    with place.calls() as calls:
        found = calls.documents.rounds(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.round)
    print_list(page, ROUNDS, as_json=as_json, after=following)


@docs.command("links", examples=["standfast docs links invoice I-1"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_links(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """Other documents and runs that a document has to do with: which it refers to, has made, changed or started, or was made by."""
    with place.calls() as calls:
        found = list(enumerate(calls.documents.links(kind, document), start=1))
    page, following = page_behind(found, limit, after, lambda each: each[0])
    print_list([link for _, link in page], LINKS, as_json=as_json, after=following)


@docs.command("choices", examples=["standfast docs choices invoice I-1 --json"])
@type_argument
@id_argument
@listed
@tenant_scope
def list_choices(place: Target, *, kind: str, document: str, as_json: bool, limit: int, after: str) -> None:
    """Why a document went the way it did: every step that asked something, and what came out; --json has what it read, too."""
    with place.calls() as calls:
        found = calls.documents.choices(kind, document)
    page, following = page_behind(found, limit, after, lambda each: each.step)
    print_list(page, CHOICES, as_json=as_json, after=following)
