"""The reference of the engine names every call that there is, and nothing else."""

from __future__ import annotations

import re

from standfast import Engine, Run
from standfast.app.api.sync import Calls, EngineCalls
from support.recording import hints_of
from support.repository import ROOT

PAGE = (ROOT / "docs" / "reference" / "engine.md").read_text(encoding="utf-8")
NAMESPACES = (ROOT / "docs" / "reference" / "namespaces.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    """What the first table below a heading names in its first column."""
    rows = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n|---", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def public(kind: type) -> set[str]:
    """The calls that a class itself offers."""
    return {name for name, member in vars(kind).items() if callable(member) and not name.startswith("_")}


def test_set_up_and_life_are_listed() -> None:
    """What only an engine has is on the page."""
    assert sorted(first_column("Set-up and life")) == sorted(public(Engine))


def test_the_ways_to_begin_are_listed() -> None:
    """So are the calls that belong to no subject."""
    assert sorted(first_column("Starting, and acting for somebody")) == sorted(public(Calls) | public(EngineCalls))


def test_all_calls_of_a_run_are_listed() -> None:
    """A call of a run is on the page, in the order of the code."""
    assert sorted(first_column("A run")) == sorted(public(Run))


def test_all_calls_of_all_namespaces_are_listed() -> None:
    """A call of a namespace is on the page; those of deciders have a page of their own."""
    spaces = {name: kind for each in (Calls, EngineCalls) for name, kind in hints_of(each).items()}
    named = {name: kind for name, kind in spaces.items() if name not in {"request", "futures", "aio", "deciders"}}
    wanted = [f"{name}.{call}" for name, kind in named.items() for call in public(kind)]
    listed = [
        name
        for row in NAMESPACES.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    assert sorted(listed) == sorted([*wanted, "deciders.execute"])
