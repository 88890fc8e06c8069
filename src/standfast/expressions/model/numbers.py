"""Numbers: reading of literals, and comparison of int, float and Decimal.

Every number stands for one decimal: a float for the shortest decimal that denotes it, as in JSON. `0.1` from JSON
therefore equals `0.1` in an expression and `Decimal("0.1")`, and the order is total and transitive. Python's comparison
differs only between float and Decimal.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode

AnyNumber: TypeAlias = int | float | Decimal

LONGEST_TEXT = 400
"""Maximum number of digits to write out. Every float has fewer before its point."""


def canonical_number(text: str, digits: int, at: int) -> str:
    """Return the literal without exponent, sign of zero or trailing zeros.

    Raises if it has more than `digits` digits.
    """
    number = _decimal(text, at)
    # The size is determined from the exponent before writing out: 1e999999999 has a billion digits.
    whole, places = number.adjusted() + 1, -int(number.as_tuple().exponent)
    if not number.is_zero() and max(whole, 1) + max(places, 0) > digits:
        raise ExpressionError(
            f"a number may have {digits} digits; this one has more", reason=ExpressionErrorCode.BAD_NUMBER, position=at
        )
    return _plain(number)


def number_value(text: str) -> AnyNumber:
    """Return the value of canonical text: an int, a float if it denotes the same number, or else a Decimal."""
    if "." not in text:
        return int(text)
    exact, rounded = Decimal(text), float(text)
    return rounded if as_decimal(rounded) == exact else exact


def number_text(number: AnyNumber) -> str:
    """Format a number: 5 for 5.0, no exponent, no trailing zeros. Raises for numbers without such a form."""
    exact = as_decimal(number)
    if not exact.is_finite() or abs(exact.adjusted()) > LONGEST_TEXT:
        raise ExpressionError("this number cannot be written out", reason=ExpressionErrorCode.BAD_NUMBER)
    return _plain(exact)


def as_decimal(number: AnyNumber) -> Decimal:
    """Return the decimal that a number stands for."""
    if isinstance(number, float):
        return Decimal(int(number)) if number.is_integer() else Decimal(repr(number))
    return Decimal(number)


def align_numbers(left: AnyNumber, right: AnyNumber) -> tuple[AnyNumber, AnyNumber]:
    """Return the pair in types that Python compares exactly.

    Raises for NaN, which would make every comparison false.
    """
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
    # A signalling NaN raises in a comparison, so Decimals are tested by method.
    return number.is_nan() if isinstance(number, Decimal) else number != number  # noqa: PLR0124


def _decimal(text: str, at: int) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ExpressionError("this is not a number", reason=ExpressionErrorCode.BAD_NUMBER, position=at) from None
