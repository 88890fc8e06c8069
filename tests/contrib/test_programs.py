"""What other people's programs say of the engine, in Python's own types."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import ConfigurationError
from standfast.contrib.embedded_cli import configuration_of


def test_lists_and_durations_are_said_as_python_has_them() -> None:
    """A list is its items, a timedelta that long, and None what is left out."""
    found = configuration_of(
        {
            "tenant": None,
            "roles": frozenset({"ops"}),
            "settings": {"outbound_allow": ["10.0.0.1", "b.example"], "lease": timedelta(seconds=90), "threads": 3},
        }
    )
    assert found.settings.outbound_allow == ("10.0.0.1", "b.example")
    assert (found.settings.lease, found.settings.threads) == (timedelta(seconds=90), 3)
    assert (found.tenant, found.roles) == ("default", ("ops",))


@pytest.mark.parametrize("told", [{"settings": {"leese": None}}, {"settings": {"lease": 90}}, {"serve": {"port": []}}])
def test_what_cannot_be_is_refused(told: dict[str, object]) -> None:
    """An unknown name, also if nothing is said of it, and a value of another kind."""
    with pytest.raises(ConfigurationError):
        configuration_of(told)
