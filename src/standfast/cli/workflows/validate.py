"""`standfast validate` and `standfast graph`: check files of workflows, and draw them, without a database.

`--app` and `--capabilities` also check handlers and granted capabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, cast

import click

from standfast.app.engine import Engine
from standfast.cli.applications import equip
from standfast.cli.exit_codes import Exit
from standfast.cli.framework import end, verb
from standfast.cli.options import FileName, file_argument
from standfast.cli.output import json_option, print_json
from standfast.cli.source_files import Mistake, mistakes_of, read_file
from standfast.cli.subprocesses import svg_of
from standfast.cli.target import configuration_of
from standfast.engine.common.settings import Settings
from standfast.errors import ConfigurationError, NotFoundError
from standfast.expressions.model.characters import visible
from standfast.expressions.model.suggestions import suggestion
from standfast.features.definitions.files import definitions_of
from standfast.features.runs.diagrams import Format, drawn
from standfast.graph.definition import Definition
from standfast.graph.model import Graph
from standfast.kernel.actor import needed_names
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.people.capabilities import Capabilities

_IN_MEMORY = "sqlite://"


def without_handlers(found: Sequence[Definition], file: str, app: str, settings: Settings) -> Iterator[Mistake]:
    """Return the steps without a handler in an application, by registering it on an engine."""
    engine = Engine(_IN_MEMORY, settings=settings, threads=False)
    try:
        equip(engine, app)
        handlers = [each for each in engine.service.shared.handlers.names() if not each.startswith(SYSTEM_PREFIX)]
    finally:
        engine.stop()
    for each in found:
        for handler in sorted(each.graph.handlers - set(handlers)):
            told = suggestion(handler, handlers) or "; register it there, or name one that it has"
            yield _odd(file, each.name, "no_handler", f"{app} has no handler {handler!r}{told}")


def without_grants(found: Sequence[Definition], file: str, roles: Capabilities) -> Iterator[Mistake]:
    """Return the capabilities that workflows require and no role has, in any tenant."""
    for each in found:
        for wanted in sorted(_wanted(each.graph)):
            if not roles.grant(wanted):
                told = suggestion(wanted, roles.named) or "; grant it to a role, or no user can take this edge"
                yield _odd(file, each.name, "no_grant", f"no role has the capability {wanted!r}{told}")


def _wanted(graph: Graph) -> set[str]:
    """Return the capabilities that a workflow requires: to start, to stop, for a step, and for an edge."""
    asked = [graph.rights.start, graph.rights.cancel, *(node.capability for node in graph.nodes.values())]
    named = {name for each in asked for name in needed_names(each)}
    return (named | {edge.capability for edge in graph.edges}) - {""}


def _odd(file: str, where: str, rule: str, message: str) -> Mistake:
    return Mistake(file=file, line=0, column=0, where=where, rule=rule, message=message, is_warning=True)


Drawing = Literal["mermaid", "dot", "json", "svg"]


@verb(
    "validate",
    "standfast validate orders.yaml",
    "standfast validate processes/*.yaml",
    "standfast validate orders.yaml --json",
    "cat rules.json | standfast validate -",
    "standfast validate orders.yaml --app shop.workflows:register --capabilities roles.yaml",
)
@click.argument("files", metavar="FILE...", type=FileName(), nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Count warnings as mistakes.")
@click.option(
    "--app", metavar="MODULE:ATTRIBUTE", help="What a worker would have: warn of steps that it has no handler for."
)
@click.option(
    "--capabilities",
    metavar="FILE",
    type=FileName(),
    help="Roles with their capabilities: warn of capabilities that no role has.",
)
@json_option
def validate(*, files: tuple[str, ...], strict: bool, app: str | None, capabilities: str | None, as_json: bool) -> None:
    """Validate each FILE, and report every mistake with line, column and rule.

    FILE holds processes (YAML or JSON), rules (JSON) or a graph (JSON); - is standard input. Exit code 0: all can be
    published. 1: there are mistakes.
    """
    looks = []
    for file in files:
        name, text = read_file(file)
        found, mistakes = mistakes_of(name, text)
        if app is not None:
            mistakes += without_handlers(found, name, app, configuration_of({}, None).configuration.settings)
        if capabilities is not None:
            mistakes += without_grants(found, name, Capabilities.from_file(capabilities))
        is_valid = not any(strict or not each.is_warning for each in mistakes)
        looks.append(_Look(name, found, mistakes, is_valid))
    is_sound = all(each.is_valid for each in looks)
    if as_json:
        told = [each.plain() for each in looks]
        print_json(told[0] if len(told) == 1 else {"is_valid": is_sound, "files": told})
    else:
        for look in looks:
            look.tell()
    end(Exit.DONE if is_sound else Exit.NO)


class _Look(NamedTuple):
    """The result of one file."""

    name: str
    workflows: list[Definition]
    mistakes: list[Mistake]
    is_valid: bool

    def plain(self) -> dict[str, object]:
        """Return it as JSON."""
        workflows = [{"name": each.name, "version": each.version, "kind": each.graph.kind} for each in self.workflows]
        mistakes = [each._asdict() for each in self.mistakes]
        return {"file": self.name, "is_valid": self.is_valid, "workflows": workflows, "mistakes": mistakes}

    def tell(self) -> None:
        """Print it as text."""
        for each in self.mistakes:
            click.echo(visible(str(each)))
        wrong = f"{self.name} has {_counted(len(self.mistakes), 'mistake')}"
        click.echo(_summary(self.name, self.workflows, len(self.mistakes)) if self.is_valid else wrong)


@verb("graph", "standfast graph orders.yaml", "standfast graph orders.yaml --format svg --output orders.svg")
@file_argument
@click.option(
    "--format",
    "language",
    type=click.Choice(["mermaid", "dot", "json", "svg"]),
    default="mermaid",
    show_default=True,
    help="svg takes Graphviz.",
)
@click.option("--workflow", metavar="NAME", default="", help="Which one, if the file has several.")
@click.option("--output", metavar="FILE", type=FileName(), help="Write the drawing there instead.")
def graph(*, file: str, language: Drawing, workflow: str, output: str | None) -> None:
    """Draw a workflow of FILE."""
    name, text = read_file(file)
    definition = picked(definitions_of(text, name), workflow, name)
    is_svg = language == "svg"
    drawing = drawn(definition.graph, "dot" if is_svg else cast("Format", language))
    drawing = svg_of(drawing) if is_svg else drawing
    if output is None:
        click.echo(drawing)
        return
    try:
        Path(output).write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{output} cannot be written: {error.strerror}") from error
    click.echo(f"{definition.id} is drawn in {output}")


def picked(found: list[Definition], wanted: str, file: str) -> Definition:
    """Return the selected workflow; the only one if none is named."""
    names = [each.name for each in found]
    if not wanted and len(found) == 1:
        return found[0]
    if not wanted:
        raise ConfigurationError(f"{file} has several workflows: say which by --workflow ({', '.join(names)})")
    for each in found:
        if wanted in {each.name, each.id}:
            return each
    raise NotFoundError("workflow", wanted, hint=f"{file} has {', '.join(names)}{suggestion(wanted, names)}")


def _summary(name: str, found: list[Definition], odd: int) -> str:
    told = f"{name} is valid: {_counted(len(found), 'workflow')}"
    return f"{told}, {_counted(odd, 'warning')}" if odd else told


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
