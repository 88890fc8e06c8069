"""`standfast dry-run`, and the assumption options of all dry runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import click
import msgspec

from standfast.cli.documents.bodies import pair_of, print_lines
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.hints import in_commands
from standfast.cli.options import STANDARD_INPUT, FileName, JsonObject
from standfast.cli.output import json_option, print_json
from standfast.cli.source_files import read_file
from standfast.cli.target import Target, tenant_scope
from standfast.cli.workflows.validate import picked
from standfast.errors import ConfigurationError
from standfast.features.definitions.dry_run import tried_out
from standfast.features.definitions.files import definitions_of
from standfast.features.simulation import DryRun
from standfast.graph.model import Graph
from standfast.kernel.actor import Actor

F = TypeVar("F", bound=Callable[..., Any])
_FILES = (".yaml", ".yml", ".json")
_GOOD = ("ended", "rests")
_BAD = ("failed", "aborted", "cancelled")


class Supposition(TypedDict):
    """The assumptions, by parameter name of the engine's calls."""

    decisions: dict[str, list[str]]
    forms: dict[str, object]
    answers: dict[str, object]
    failing: Sequence[str]
    events: dict[str, object]
    unanswered: Sequence[str]


def supposing(function: F) -> F:
    """Decorator: add the assumption options to a command; `supposition` parses them."""
    for option in (
        click.option(
            "--unanswered",
            metavar="NAME",
            help="A step without a decision, or an event that does not arrive.",
            multiple=True,
        ),
        click.option(
            "--event", "events", metavar="NAME={json}", help="What an event or a signal brings.", multiple=True
        ),
        click.option(
            "--fail", "failing", metavar="NAME", help="A step, handler or workflow that fails.", multiple=True
        ),
        click.option(
            "--answer",
            "answers",
            metavar="NAME={json}",
            help="What a step, handler or workflow answers.",
            multiple=True,
        ),
        click.option("--form", "forms", metavar="STEP={json}", help="What is filled in at a step.", multiple=True),
        click.option(
            "--decide",
            "decisions",
            metavar="STEP=OUTCOME",
            help="The decision of a step, if not approval; repeat it for the next time.",
            multiple=True,
        ),
    ):
        function = option(function)
    return function


def supposition(typed: dict[str, Any]) -> Supposition:
    """Parse the options of `supposing`."""
    decisions: dict[str, list[str]] = {}
    for step, outcome in map(pair_of, typed["decisions"]):
        decisions.setdefault(step, []).append(outcome)
    return Supposition(
        decisions=decisions,
        forms=dict(map(_brought, typed["forms"])),
        answers=dict(map(_brought, typed["answers"])),
        failing=typed["failing"],
        events=dict(map(_brought, typed["events"])),
        unanswered=typed["unanswered"],
    )


@verb(
    "dry-run",
    "standfast dry-run order '{\"total\": 40}' --fail charge",
    "standfast dry-run holidays.yaml --decide asked=rejected",
    "standfast dry-run expenses.yaml --workflow expenses.claim --unanswered review --json",
)
@click.argument("workflow_or_file", metavar="WORKFLOW|FILE", type=FileName())
@click.argument("given", metavar="[INPUT]", type=JsonObject(), default="{}")
@click.option("--version", default="", help="The version of a published workflow; the newest by default.")
@click.option("--workflow", metavar="NAME", default="", help="Which one, if a file has several.")
@supposing
@json_option
@tenant_scope
def dry_run(
    place: Target,
    /,
    *,
    workflow_or_file: str,
    given: dict[str, object],
    version: str,
    workflow: str,
    as_json: bool,
    **typed: Any,
) -> None:
    """Simulate a run of a published workflow, or of one in FILE, which needs no database.

    Nothing is stored, no notification is sent, and no handler is called. Assumptions are marked with a question mark.
    Exit code 0: it completes. 1: it does not, or ends badly.
    """
    said = supposition(typed)
    if _is_file(workflow_or_file):
        if version:
            raise ConfigurationError(f"--version is for published workflows; {workflow_or_file!r} is a file")
        graph = _graph(workflow_or_file, workflow)
        told = place.configuration
        actor = Actor(id=told.actor or "somebody", roles=frozenset(told.roles))
        found = tried_out(graph, given, cast("dict[str, object]", said), actor=actor, settings=told.settings)
    elif workflow:
        raise ConfigurationError(f"--workflow is for files, and there is no file {workflow_or_file!r}")
    else:
        with place.calls() as calls:
            found = calls.definitions.dry_run(workflow_or_file, given, version=version, **said)
    print_dry_run(found, as_json=as_json)
    end(Exit.DONE if found.ends in _GOOD and found.status not in _BAD else Exit.NO)


def print_dry_run(found: DryRun, *, as_json: bool) -> None:
    """Print the path, line by line."""
    print_json(found) if as_json else print_lines(in_commands(found.to_text()))


def _is_file(name: str) -> bool:
    return name == STANDARD_INPUT or name.endswith(_FILES) or Path(name).is_file()


def _graph(file: str, workflow: str) -> Graph:
    name, text = read_file(file)
    return picked(definitions_of(text, name), workflow, name).graph


def _brought(text: str) -> tuple[str, object]:
    """Parse a name and its JSON data."""
    name, value = pair_of(text)
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError(f"what stands behind {name}= is not JSON: {error}") from error
