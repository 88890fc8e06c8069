"""`standfast expr`: evaluate an expression over a JSON file and explain the result.

Exit codes: 0 if the condition is true or a value was computed, 1 if the condition is false, 2 if the expression, the
data or the call is wrong.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import NoReturn, cast, get_args

import click

from standfast.cli.exit_codes import Exit
from standfast.cli.framework import verb
from standfast.cli.options import STANDARD_INPUT, FileName
from standfast.errors import ExpressionError
from standfast.expressions import Explanation, ExpressionOptions, Spelling, parse, point
from standfast.expressions.model.characters import visible
from standfast.kernel.codec.unique_keys import distinct


@verb(
    "expr",
    "standfast expr 'order.total > 100' --data order.json",
    "standfast expr 'total > 3' --data '{\"total\": 5}'",
    "echo '{\"total\": 5}' | standfast expr 'total > 3' --data -",
)
@click.argument("expression")
@click.option(
    "--data",
    "file",
    metavar="FILE",
    type=FileName(),
    help="JSON object to read variables from: a file, the object itself, or -.",
)
@click.option(
    "--spelling", type=click.Choice(get_args(Spelling)), default="native", show_default=True, help="How it is written."
)
@click.option("--now", metavar="ISO", help="The moment that 'now' stands for, e.g. 2026-03-31T12:00:00Z.")
@click.option(
    "--lenient/--strict", default=None, help="Whether variables may be absent. [default: as the spelling has it]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the audit record instead.")
def expr(
    expression: str, *, file: str | None, spelling: str, now: str | None, lenient: bool | None, as_json: bool
) -> None:
    """Evaluate EXPRESSION and explain the result.

    Exit code 0: it is true, or a value came out. 1: it is false. 2: something is wrong.
    """
    data = {} if file is None else _read_data(file)
    if now is not None:
        data["now"] = _read_moment(now)
    try:
        parsed = parse(expression, spelling=cast("Spelling", spelling), options=ExpressionOptions(lenient=lenient))
    except ExpressionError as error:
        _fail(point(error))
    explanation = parsed.explain(data)
    if as_json:
        click.echo(json.dumps(explanation.to_data()))
    else:
        _print(str(parsed), explanation)
    sys.exit(_exit_code(explanation))


def _print(native: str, explanation: Explanation) -> None:
    """Print the expression in native form, the data that it read, and the result."""
    click.echo(native)
    for name, value in explanation.variables.items():
        click.echo(f"  {name} = {'(absent)' if name in explanation.absent else _shown(value)}")
    failure = explanation.failure
    if failure is None:
        click.echo(_shown(explanation.result))
        return
    error = ExpressionError(
        failure.message, reason=failure.reason, source=explanation.expression, position=failure.position
    )
    click.echo(point(error), err=True)


def _exit_code(explanation: Explanation) -> int:
    if explanation.failure is not None:
        return Exit.WRONG
    return Exit.NO if explanation.result is False else Exit.DONE


def _read_data(file: str) -> dict[str, object]:
    """The JSON object that is given, in a file or on standard input; ends the command with a clear message if there is none."""
    is_object = file.lstrip().startswith("{")
    name = "what was given" if is_object else "standard input" if file == STANDARD_INPUT else file
    try:
        content = file if is_object else _content(file).decode("utf-8-sig")
        data = json.loads(content, parse_constant=_refuse_constant, object_pairs_hook=distinct)
    except OSError as error:
        _fail(f"{name} cannot be read: {error.strerror}; give a file, an object such as '{{\"total\": 5}}', or -")
    except (ValueError, RecursionError) as error:
        _fail(f"{name} is not JSON: {error}")
    if not isinstance(data, dict):
        _fail(f'{name} must hold a JSON object, such as {{"order": {{"total": 250}}}}')
    return data


def _content(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file.removeprefix("@")).read_bytes()


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        _fail(f"--now takes an ISO 8601 datetime such as 2026-03-31T12:00:00Z, not {text!r}")
    if moment.tzinfo is None:
        _fail(f"--now needs a time zone: {text}Z is that time in UTC")
    return moment


def _shown(value: object) -> str:
    """Escape a value for a terminal: control characters in the data must not have an effect."""
    return visible(json.dumps(value, ensure_ascii=False))


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(Exit.WRONG)
