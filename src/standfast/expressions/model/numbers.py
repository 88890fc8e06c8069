"""Numbers: how a literal is read, and how int, float and Decimal compare.

Every number stands for one decimal: an int for itself, a Decimal for itself, a float for the shortest decimal that
denotes it (what JSON shows). So `0.1` from JSON equals `0.1` in an expression equals `Decimal("0.1")`, and the order
is total and transitive. Python's own comparison agrees with this everywhere except between float and Decimal.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode

AnyNumber: TypeAlias = int | float | Decimal

LONGEST_TEXT = 400
"""Digits beyond which a number is not written out; every float has fewer before its point."""


def canonical_number(text: str, digits: int, at: int) -> str:
    """The literal without exponent, sign of zero or trailing zeros. Refuses what would be longer than `digits`."""
    number = _decimal(text, at)
    # The size is judged on the exponent, before the number is written out: 1e999999999 has a billion digits.
    whole, places = number.adjusted() + 1, -int(number.as_tuple().exponent)
    if not number.is_zero() and max(whole, 1) + max(places, 0) > digits:
        raise ExpressionError(
            f"a number may have {digits} digits; this one has more", reason=ExpressionErrorCode.BAD_NUMBER, position=at
        )
    return _plain(number)


def number_value(text: str) -> AnyNumber:
    """The value of canonical text: an int, a float if that says the same number, else a Decimal."""
    if "." not in text:
        return int(text)
    exact, rounded = Decimal(text), float(text)
    return rounded if as_decimal(rounded) == exact else exact


def number_text(number: AnyNumber) -> str:
    """The number as people write it: 5 for 5.0, no exponent, no trailing zeros. Refuses what has no such form."""
    exact = as_decimal(number)
    if not exact.is_finite() or abs(exact.adjusted()) > LONGEST_TEXT:
        raise ExpressionError("this number cannot be written out", reason=ExpressionErrorCode.BAD_NUMBER)
    return _plain(exact)


def as_decimal(number: AnyNumber) -> Decimal:
    """The decimal that a number stands for."""
    if isinstance(number, float):
        return Decimal(int(number)) if number.is_integer() else Decimal(repr(number))
    return Decimal(number)


def align_numbers(left: AnyNumber, right: AnyNumber) -> tuple[AnyNumber, AnyNumber]:
    """The pair in a form that Python compares without rounding. NaN is refused: it would make every answer a no."""
    if _is_nan(left) or _is_nan(right):
        raise ExpressionError("NaN is not a number that can be compared", reason=ExpressionErrorCode.NOT_A_NUMBER)
    if isinstance(left, float) and isinstance(right, Decimal):
        return as_decimal(left), right
    if isinstance(left, Decimal) and isinstance(right, float):
        return left, as_decimal(right)
    return left, right


def _plain(number: Decimal) -> str:
    if number.is_zero():
        return "0"
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_nan(number: AnyNumber) -> bool:
    # A signalling NaN raises on comparison, so Decimals are asked by name.
    return number.is_nan() if isinstance(number, Decimal) else number != number  # noqa: PLR0124


def _decimal(text: str, at: int) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ExpressionError("this is not a number", reason=ExpressionErrorCode.BAD_NUMBER, position=at) from None
