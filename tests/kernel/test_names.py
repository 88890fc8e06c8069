"""Names by themselves."""

from __future__ import annotations

from itertools import product

from standfast.kernel.names import joined


def test_no_other_names_come_to_the_same() -> None:
    """Names that are joined can be told from all others that are, however many there are and whatever stands in them."""
    words = ("a", ":", "a:b", "%", "%3A", "a%3Ab", "")
    several = [names for count in (1, 2, 3) for names in product(words, repeat=count)]
    assert len({joined(*names) for names in several}) == len(several)
    assert joined("patrol", "acme", "north") == "patrol:acme:north"
