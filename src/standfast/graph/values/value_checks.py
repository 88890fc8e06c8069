"""Checks of single values of a graph. Each function yields findings with code and remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from standfast.errors import Diagnostic, ExpressionError
from standfast.expressions import Expression
from standfast.expressions.model.characters import JOINERS, describe, is_hidden
from standfast.graph.values.handler_calls import HandlerCall
from standfast.kernel.codec import message_types as vocabulary
from standfast.kernel.codec.canonical import LARGEST_INTEGER

LONGEST_NAME = 200
MOST_BYTES = vocabulary.LONGEST_NAME
LONGEST_MS = 100 * 366 * 24 * 3600 * 1000
"""A hundred years. A later time may exceed the calendar."""
DEEPEST_DATA = 64
"""Maximum nesting of an author's data."""
BACKOFFS = ("fixed", "linear", "exponential")

_WHOLE = 100
"""The whole in percent."""


def name_findings(position: str, code: str, what: str, text: object) -> Iterator[Diagnostic]:
    """Check a name or a display text."""
    if not isinstance(text, str):
        yield Diagnostic(code, f"{what} is {text!r}; give a text", position)
        return
    if not text.strip():
        yield Diagnostic(code, f"{what} is empty; give one", position)
    if len(text) > LONGEST_NAME:
        message = f"{what} has {len(text)} characters ({text[:20]!r}…); use at most {LONGEST_NAME}"
        yield Diagnostic("long_name", message, position)
    elif (size := len(text.encode("utf-8", "replace"))) > MOST_BYTES:
        message = f"{what} takes {size} bytes ({text[:20]!r}…); use at most {MOST_BYTES}, which is fewer letters of other alphabets"
        yield Diagnostic("long_name", message, position)
    hidden = next((each for each in text if is_hidden(each) and each not in JOINERS), None)
    if hidden is not None:
        yield Diagnostic("hidden_character", f"{what} holds {describe(hidden)}; remove it", position)


def needed_findings(position: str, what: str, needed: object) -> Iterator[Diagnostic]:
    """Check a required capability, or several. The empty text requires none."""
    if not isinstance(needed, tuple):
        if needed != "":
            yield from name_findings(position, "capability", what, needed)
        return
    yield from some_findings(position, "capability", what, needed, then="it cannot be granted")
    for each in needed:
        yield from name_findings(position, "capability", what, each)


def empty_words(what: str, then: str) -> str:
    """Return the message about an empty list and its consequence. An empty list never means all."""
    return f"{what} is empty, so {then}; name at least one, or leave it out"


def some_findings(position: str, code: str, what: str, given: Collection[object], *, then: str) -> Iterator[Diagnostic]:
    """Check a list of people, roles, capabilities or parts: if it is written, it must have an item."""
    if not given:
        yield Diagnostic(code, empty_words(what, then), position)


def word_findings(position: str, code: str, what: str, value: str, *, words: Collection[str]) -> Iterator[Diagnostic]:
    """Check a word from a fixed set."""
    if value not in words:
        yield Diagnostic(code, f"{what} is {value!r}; it can be {listed(words)}", position)


def time_findings(position: str, code: str, what: str, value: object, *, low: int = 0) -> Iterator[Diagnostic]:
    """Check a duration in whole milliseconds."""
    return number_findings(position, code, f"{what} in milliseconds", value, low=low, high=LONGEST_MS)


def number_findings(
    position: str, code: str, what: str, value: object, *, low: int = 0, high: int = LARGEST_INTEGER
) -> Iterator[Diagnostic]:
    """Check a whole number within bounds."""
    if type(value) is int and low <= value <= high:
        return
    wanted = f"a whole number from {low} to {high}"
    if high >= LONGEST_MS:  # The bound is named only in findings that exceed it.
        wanted = f"at most {high}" if isinstance(value, int) and value > high else f"a whole number of at least {low}"
    yield Diagnostic(code, f"{what} is {value!r}; it must be {wanted}", position)


def expression_findings(position: str, what: str, stored: object) -> Iterator[Diagnostic]:
    """Check that the machine can read a stored expression."""
    try:
        Expression.from_data(stored)
    except ExpressionError as error:
        yield Diagnostic("expression", f"{what} cannot be read: {error}; store a parsed expression's data", position)


def work_findings(name: str, what: str, work: HandlerCall, *, least_calls: int) -> Iterator[Diagnostic]:
    """Check a handler call."""
    retry = work.retry
    yield from name_findings(name, "no_handler", f"the handler of {what}", work.handler)
    if str(work.handler).startswith("$"):
        message = (
            f"the handler {work.handler!r} of {what} begins with '$', which is kept for the engine; take another name"
        )
        yield Diagnostic("reserved_handler", message, name)
    what_counts = f"the number of calls of {what}, the first one included,"
    yield from number_findings(name, "attempts", what_counts, retry.max_calls, low=least_calls)
    yield from time_findings(name, "start_after", f"the start delay of {what}", work.start_after_ms)
    yield from time_findings(name, "retry_delay", f"the delay of {what}", retry.delay_ms)
    yield from time_findings(name, "retry_cap", f"the longest delay of {what}", retry.cap_ms)
    yield from number_findings(
        name, "retry_factor", f"the factor of {what} in percent", retry.factor_percent, low=_WHOLE
    )
    yield from number_findings(
        name, "retry_jitter", f"the jitter of {what} in percent", retry.jitter_percent, high=_WHOLE
    )
    yield from word_findings(name, "retry_backoff", f"the backoff of {what}", retry.backoff, words=BACKOFFS)
    if work.once and type(retry.max_calls) is int and retry.max_calls > 1:
        message = f"{what} is called at most once, which {retry.max_calls} calls contradict; allow 1, or drop `once`"
        yield Diagnostic("once", message, name)
    if work.timeout_ms is not None:
        yield from time_findings(name, "timeout", f"the timeout of the handler of {what}", work.timeout_ms, low=1)


def plain_findings(position: str, what: str, value: object) -> Iterator[Diagnostic]:
    """Check an author's plain data; `what` is its name and its code."""
    place = _not_plain(value, what)
    if place:
        remedy = "use texts, whole numbers, true, false, null, and lists and objects of them"
        yield Diagnostic(what, f"{place} of {position!r} cannot be stored as it is; {remedy}", position)


def _not_plain(given: object, what: str) -> str:
    """Return the path of the first value that JSON without fractions does not have. Empty if there is none."""
    pending: list[tuple[object, str, int]] = [(given, what, 0)]
    while pending:
        value, place, depth = pending.pop()
        if depth > DEEPEST_DATA:
            return f"{what} nested deeper than {DEEPEST_DATA} levels"
        match value:
            case None | bool() | str():
                pass
            case int() if abs(value) <= LARGEST_INTEGER:
                pass
            case list():
                pending += [(each, f"{place}[{index}]", depth + 1) for index, each in enumerate(value)]
            case dict() if all(isinstance(key, str) for key in value):
                pending += [(each, f"{place}.{key}", depth + 1) for key, each in value.items()]
            case _:
                return place
    return ""


def listed(words: Collection[str]) -> str:
    """Return words as a sorted enumeration."""
    return ", ".join(repr(word) for word in sorted(words))
