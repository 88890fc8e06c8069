"""What the package declares: defaults, limits, routes."""

from __future__ import annotations

from support.declarations import LIST, declarations


def test_what_is_left_out_means_what_it_always_meant() -> None:
    """A default is a promise to what is stored and to who calls: another one is a line of the list that somebody changed on purpose.

    `python tests/support/declarations.py` writes the list anew. Of a stored class a field may be added; a default that changes
    makes what is stored mean something else.
    """
    listed, now = LIST.read_text(encoding="utf-8").splitlines(), declarations()

    assert sorted(set(now) - set(listed)) == []
    assert sorted(set(listed) - set(now)) == []
