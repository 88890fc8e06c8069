"""`standfast template`: the processes that come with the package, to look at, to play with, and to begin from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import click
import msgspec

from standfast.cli.develop.simulate import Play, SimulationStep, act_of, named_data, played
from standfast.cli.framework import complain, verbs
from standfast.cli.options import FileName, JsonObject
from standfast.cli.output import Columns, coloured, json_option, print_json, print_list
from standfast.errors import ConfigurationError, NotFoundError, StandfastError
from standfast.expressions.model.suggestions import suggestion
from standfast.features.process_files.loading import load_processes
from standfast.features.processes.views import ProcessDescriptor, ProcessEvent
from standfast.graph.definition import Definition

_STOP = "stop"

TRAIL: Columns[ProcessEvent] = {
    "AT": lambda each: each.timestamp,
    "STEP": lambda each: each.step_id,
    "EVENT": lambda each: each.event,
    "BY": lambda each: each.actor_id,
    "DATA": lambda each: each.data or "",
    "COMMENT": lambda each: each.comment,
}


class ProcessTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template in a list."""

    name: str
    workflow: str
    steps: int
    operations: list[str]
    """The operations that an application must implement."""
    description: str


@verbs("template")
def template() -> None:
    """List, show, run and copy the process templates of the package."""


@template.command("list", examples=["standfast template list"])
@json_option
def list_templates(*, as_json: bool) -> None:
    """List the templates."""
    found = [_described(name) for name in names()]
    columns: Columns[ProcessTemplate] = {
        "NAME": lambda each: each.name,
        "WORKFLOW": lambda each: each.workflow,
        "STEPS": lambda each: each.steps,
        "DESCRIPTION": lambda each: each.description,
    }
    print_list(found, columns, as_json=as_json)


@template.command("show", examples=["standfast template show order_approval"])
@click.argument("name")
@json_option
def show_template(*, name: str, as_json: bool) -> None:
    """Print a template."""
    text = _text(name)
    if as_json:
        print_json({**msgspec.structs.asdict(_described(name)), "text": text})
    else:
        click.echo(text, nl=False)


@template.command(
    "copy", examples=["standfast template copy order_approval", "standfast template copy settlement pay.yaml"]
)
@click.argument("name")
@click.argument("file", type=FileName(), default="")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def copy_template(*, name: str, file: str, force: bool) -> None:
    """Write a template to FILE, by default NAME.yaml, to change and publish it."""
    text, target = _text(name), Path(file or f"{name}.yaml")
    try:
        with target.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{target} is there already; name another file, or give --force") from error
    except OSError as error:
        raise ConfigurationError(f"{target} cannot be written: {error.strerror}") from error
    click.echo(f"{name} is in {target}; `standfast validate {target}` checks what you make of it")


@template.command(
    "run",
    examples=[
        "standfast template run order_approval",
        'standfast template run order_approval --do approved --input \'{"order_id": "o-1"}\'',
        "standfast template run settlement --do approved --do +6d --answer 'settlement.compute={\"total_cents\": 5}'",
    ],
)
@click.argument("name")
@click.option("--input", "given", type=JsonObject(), default="{}", help="What it is started with, as JSON or @file.")
@click.option("--do", "acts", multiple=True, metavar="ACT", help="What happens, in order: EVENT, EVENT={json}, or +3d.")
@click.option("--answer", "answers", multiple=True, metavar="OPERATION={json}", help="What an operation answers.")
@click.option(
    "--keep", metavar="FILE", type=FileName(), help="Play in this SQLite file, and keep it; in memory otherwise."
)
@json_option
def run_template(
    *, name: str, given: dict[str, object], acts: Sequence[str], answers: Sequence[str], keep: str | None, as_json: bool
) -> None:
    """Simulate a template, and print its trail.

    The simulation has no side effects: operations only return results, and the clock is manual. --do gives the events;
    on a terminal the command asks for further ones.
    """
    definition = _definition(name)
    planned = [act_of(each) for each in acts]
    url = "sqlite://" if keep is None else f"sqlite:///{quote(keep)}"
    with played(definition, url, given, dict(map(named_data, answers))) as play:
        for act in planned:
            play.perform(act)
        if not as_json and sys.stdin.isatty():
            _ask(play)
        if as_json:
            print_json({"instance": play.stands().instance, "waits_for": play.awaited(), "trail": play.trail()})
        else:
            print_list(play.trail(), TRAIL, as_json=False)
            click.echo(_summary(play))


def names() -> list[str]:
    """The names of the templates."""
    files = (resources.files("standfast") / "cli/develop/samples").iterdir()
    return sorted(each.name.removesuffix(".yaml") for each in files if each.name.endswith(".yaml"))


def _text(name: str) -> str:
    if name not in names():
        own = f"; `standfast dry-run {name}` tries a file of yours out" if Path(name).suffix else ""
        raise NotFoundError("template", name, hint=f"there are {', '.join(names())}{suggestion(name, names())}{own}")
    return (resources.files("standfast") / "cli/develop/samples" / f"{name}.yaml").read_text(encoding="utf-8")


def _definition(name: str) -> Definition:
    (definition,) = load_processes(_text(name), name=f"{name}.yaml")
    return definition


def _described(name: str) -> ProcessTemplate:
    definition = _definition(name)
    return ProcessTemplate(
        name=name,
        workflow=definition.name,
        steps=len(definition.graph.nodes),
        operations=sorted(definition.graph.handlers),
        description=definition.description,
    )


def _summary(play: Play) -> str:
    instance = play.stands().instance
    told = f"{instance.workflow_id} is {coloured(instance.status)}"
    if instance.outcome:
        return f"{told}: {instance.outcome}"
    return f"{told} at {instance.current_step}; it goes on by {', '.join(play.awaited()) or 'time'}"


def _ask(play: Play) -> None:
    """Ask for events until the process has ended, or the user stops."""
    while (stands := play.stands()).instance.status == "active":
        click.echo(_summary(play))
        text = click.prompt(f"What happens? ({', '.join([*play.awaited(), '+3d', _STOP])})", default=_STOP)
        if text == _STOP:
            return
        try:
            act = act_of(text)
            play.perform(act if act.data or not act.event else SimulationStep(event=act.event, data=_filled(stands)))
        except StandfastError as error:
            complain(str(error))


def _filled(stands: ProcessDescriptor) -> dict[str, object]:
    """Ask the user for the form of a step; empty fields are omitted."""
    form = stands.step.form or {}
    properties = form.get("properties")
    found: dict[str, object] = {}
    for field, schema in properties.items() if isinstance(properties, dict) else ():
        title = schema.get("title", field) if isinstance(schema, dict) else field
        text = click.prompt(f"  {title}", default="", show_default=False)
        if text:
            found[field] = _typed(text, schema)
    return found


def _typed(text: str, schema: object) -> object:
    """A value of a form: numbers, lists and objects are written as JSON, texts as they are."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind in {None, "string"}:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
