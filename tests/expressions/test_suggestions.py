"""What is offered for a word that is not known."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.expressions.model.suggestions import suggestion


def test_the_nearest_word_is_offered() -> None:
    """And none that is far off."""
    assert suggestion("totl", ["note", "total", "tot"]) == "; did you mean 'total'?"
    assert not suggestion("totl", ["customer", "x"])


def test_a_word_is_compared_with_a_bounded_number_of_others() -> None:
    """A file with thousands of names, and thousands of mistakes, is refused in a time that does not grow with both."""
    taken: list[int] = []

    def known() -> Iterator[str]:
        for number in range(10_000):
            taken.append(number)
            yield f"step{number}"

    assert suggestion("stepx", known()).startswith("; did you mean 'step")
    assert len(taken) <= 1_000


def test_long_words_are_not_compared() -> None:
    """It takes the square of their lengths, or worse."""
    assert not suggestion("a" * 191, ["a" * 190])
    assert not suggestion("a" * 40, ["a" * 60])
