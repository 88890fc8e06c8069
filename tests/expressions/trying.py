"""Short ways to try an expression, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionOptions, Spelling, parse

DEFAULT = ExpressionOptions()


def value(
    source: str | Mapping[str, object],
    data: Mapping[str, object] | None = None,
    *,
    spelling: Spelling = "native",
    options: ExpressionOptions = DEFAULT,
) -> object:
    """What the expression makes of the data."""
    return parse(source, spelling=spelling, options=options).evaluate(data or {})


def answer(action: Callable[[], object]) -> object:
    """What the action gives, be it an expression error; any other exception is a failure of the test."""
    try:
        return action()
    except ExpressionError as error:
        return error


def refused(
    source: str | Mapping[str, object], *, spelling: Spelling = "native", options: ExpressionOptions = DEFAULT
) -> ExpressionError:
    """The error with which parsing refuses the source."""
    with pytest.raises(ExpressionError) as caught:
        parse(source, spelling=spelling, options=options)
    return caught.value


def failed(expression: Expression, data: Mapping[str, object]) -> ExpressionError:
    """The error with which evaluation fails on the data."""
    with pytest.raises(ExpressionError) as caught:
        expression.evaluate(data)
    return caught.value
