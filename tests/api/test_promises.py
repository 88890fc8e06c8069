"""What callers of the API rely on stays: addresses are added, and none is taken away, moved or put behind another right."""

from __future__ import annotations

from pathlib import Path

import pytest

from standfast.http.routes import ROUTES

PROMISED = Path(__file__).with_name("promised-routes.txt")
"""Method, address and right (`-` for none) of each route that was ever promised. A new one is added with its route."""


@pytest.mark.row("R-073")
def test_no_route_is_taken_away() -> None:
    """Whatever was promised is still there, at the same address and for the same right; and whatever is there is promised."""
    here = {f"{route.method} {route.path} {route.permission or '-'}" for route in ROUTES}
    promised = PROMISED.read_text(encoding="utf-8").splitlines()
    assert promised == sorted(set(promised))
    assert set(promised) - here == set()
    assert here - set(promised) == set(), "write it down: from now on somebody relies on it"
