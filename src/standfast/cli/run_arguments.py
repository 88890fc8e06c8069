"""Shared arguments of commands about one run: its id, its step, the wait option, and a common shape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias

import click

from standfast.app.api import sync as blocking
from standfast.cli.options import Duration
from standfast.cli.target import Target, tenant_scope
from standfast.errors import NotFoundError
from standfast.expressions.model.suggestions import suggestion

P = ParamSpec("P")
Run: TypeAlias = blocking.Run[object]

ID: Final = "01a1e766-3ad5-7618-92bc-aee7fef0c9eb"
"""A run in examples."""

run_argument = click.argument("run", metavar="RUN")
step_argument = click.argument("step", metavar="STEP")
wait_option = click.option(
    "--wait", type=Duration(), default="30s", show_default=True, help="How long to wait for its end; it goes on."
)


def done_to_run(function: Callable[Concatenate[Run, P], str]) -> Callable[..., None]:
    """Decorator: pass the run, and the number of its step if the command takes one; print the result."""

    @tenant_scope
    @functools.wraps(function)
    def asked(place: Target, /, *, run: str, **options: Any) -> None:
        with place.calls() as calls:
            handle = calls.run(run)
            if "step" in options:
                options["step"] = _numbered(handle, options["step"])
            told = function(handle, **options)  # type: ignore[call-arg]  # Click gives what the decorators above have declared.
        click.echo(told)

    return asked


def _numbered(run: Run, step: str) -> int:
    """The number of a step that is given by number, or by name: then its last visit."""
    if step.isascii() and step.isdecimal():
        return int(step)
    steps = run.steps()
    found = [each.number for each in steps if each.name == step]
    if not found:
        names = dict.fromkeys(each.name for each in steps)
        told = f"so far it has {', '.join(names) or 'none'}{suggestion(step, names)}"
        raise NotFoundError("step", step, hint=told)
    return found[-1]
