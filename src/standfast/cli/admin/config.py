"""`standfast config`: show every setting with its value and where it came from."""

from __future__ import annotations

from typing import NamedTuple

import click

from standfast.app.configuration import DEFAULT
from standfast.cli.framework import verb
from standfast.cli.output import Columns, json_option, print_list
from standfast.cli.target import Target, hidden_password, tenant_scope
from standfast.engine.common.environment import text_of, variable_of
from standfast.errors import NotFoundError
from standfast.expressions.model.suggestions import suggestion

_SECRET = ("api_key",)
"""Values that are not printed."""


class Value(NamedTuple):
    """A value of the configuration."""

    name: str
    value: str
    origin: str
    variable: str


LISTING: Columns[Value] = {
    "NAME": lambda each: each.name,
    "VALUE": lambda each: each.value,
    "FROM": lambda each: each.origin,
    "VARIABLE": lambda each: each.variable,
}


@verb("config", "standfast config", "standfast config --said", "standfast config settings.lease --json")
@click.argument("name", default="")
@click.option("--said", is_flag=True, help="Only values that are set; no defaults.")
@json_option
@tenant_scope
def config(place: Target, *, name: str, said: bool, as_json: bool) -> None:
    """Show the configuration and the source of each value: flag, variable, file or default.

    NAME is a value, or the beginning of its name, such as settings.retry. The database is not opened.
    """
    found = [
        Value(".".join(path), "***" if path == _SECRET and value else _shown(value), origin, variable_of(path))
        for path, value, origin in place.source.values()
    ]
    names = [each.name for each in found]
    wanted = [each for each in found if not name or each.name == name or each.name.startswith(f"{name}.")]
    if not wanted:
        near = next(
            (f"; did you mean {each!r}?" for each in names if each.endswith(f".{name}")), suggestion(name, names)
        )
        raise NotFoundError("setting", name, hint=f"`standfast config` lists those that there are{near}")
    kept = [each for each in wanted if not said or each.origin != DEFAULT]
    if as_json:
        print_list([each._asdict() for each in kept], {}, as_json=True)
    else:
        print_list(kept, LISTING, as_json=False)


def _shown(value: object) -> str:
    """Format a value as for a variable, without the password of a URL."""
    return hidden_password(value) if isinstance(value, str) else text_of(value)
