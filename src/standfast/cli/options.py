"""Shared options, and parsers of their values: JSON, instants, durations and list positions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

import click
from click.shell_completion import CompletionItem

from standfast.cli.output import json_option
from standfast.kernel.codec.unique_keys import distinct
from standfast.kernel.durations import HOW_TO_WRITE, duration_of

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

STANDARD_INPUT: Final = "-"


class FileName(click.ParamType):  # type: ignore[type-arg]
    """A file name, which shells complete; the reader reports a missing file."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the file completion; shells know the files best."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


class Instant(click.ParamType):  # type: ignore[type-arg]
    """An instant: an ISO 8601 time with its zone, or a duration ago."""

    name = "instant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The moment that a text tells."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time; write it like 2026-03-31T12:00:00Z", param, ctx)
        if found.tzinfo is None:
            self.fail(f"{value!r} has no time zone; {value}Z is that time in UTC", param, ctx)
        return found


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A length of time, such as `1h30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The length that a text tells."""
        if isinstance(value, timedelta):
            return value
        found = duration_of(value)
        if found is None:
            self.fail(f"{value!r} is no duration; {HOW_TO_WRITE}", param, ctx)
        return found


class Json(click.ParamType):  # type: ignore[type-arg]
    """A JSON value: literal, `@file` for the content of a file, or `-` for standard input."""

    name = "json"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """The value that a text tells."""
        text = str(value)
        try:
            if text == STANDARD_INPUT:
                text = sys.stdin.read()
            elif text.startswith("@"):
                text = Path(text[1:]).read_text(encoding="utf-8")
            return json.loads(text, object_pairs_hook=distinct)
        except OSError as error:
            self.fail(f"{text[1:]} cannot be read: {error.strerror}", param, ctx)
        except (ValueError, RecursionError) as error:
            self.fail(
                f"this is not JSON: {error}; write '{{\"total\": 5}}', @file.json, or - for standard input", param, ctx
            )


class JsonObject(Json):
    """A JSON object."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, object]:
        """The object that a text tells."""
        if isinstance(value, dict):
            return value
        found = super().convert(value, param, ctx)
        if not isinstance(found, dict):
            self.fail("this must be a JSON object, such as '{\"total\": 5}'", param, ctx)
        return found


def listed(function: F) -> F:
    """Decorator: the command prints a page of a list."""
    function = click.option(
        "--after", metavar="PLACE", default="", help="Begin behind this one, as the page before says."
    )(function)
    function = click.option(
        "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many at most."
    )(function)
    return json_option(function)


def file_argument(function: F) -> F:
    """Decorator: the command takes a file of workflows; `-` is standard input."""
    return click.argument("file", metavar="FILE", type=FileName())(function)


reason_option = click.option("--reason", default="", help="The reason, for the history.")
needed_reason_option = click.option("--reason", required=True, help="The reason, for the history.")


def page_of(found: Sequence[T], limit: int, place: Callable[[T], object]) -> tuple[Sequence[T], str | None]:
    """Return a page of a list that was read with one item more than the limit, and the next page's start."""
    shown = found[:limit]
    return shown, str(place(shown[-1])) if len(found) > limit else None


def page_behind(
    found: Sequence[T], limit: int, after: str, place: Callable[[T], object]
) -> tuple[Sequence[T], str | None]:
    """Return a page of a complete list, and the next page's start."""
    places = [str(place(each)) for each in found]
    if after and after not in places:
        raise _no_place(after)
    return page_of(found[places.index(after) + 1 :] if after else found, limit, place)


def _no_place(text: str) -> click.BadParameter:
    return click.BadParameter(f"{text!r} is no place in this list; take it from the page before", param_hint="--after")


def number_after(text: str) -> int:
    """A place in a list that is a number."""
    if text and not (text.isascii() and text.isdecimal()):
        raise click.BadParameter(f"{text!r} is no number; take it from the page before", param_hint="--after")
    return int(text or 0)


def moment_after(text: str) -> tuple[datetime, str]:
    """A place in a list that is a moment and an id, as `place_of` writes it."""
    moment, _, name = text.partition("/")
    try:
        return datetime.fromisoformat(moment), name
    except ValueError:
        raise _no_place(text) from None


def place_of(moment: datetime | None, name: object) -> str:
    """A place in a list by a moment and an id."""
    return f"{moment.isoformat() if moment is not None else ''}/{name}"
