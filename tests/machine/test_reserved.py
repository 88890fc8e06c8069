"""Names that begin with '$' are the engine's own."""

from __future__ import annotations

import pytest

from standfast import ConfigurationError, DefinitionError, Engine, Saga


def test_no_step_names_the_engines_own_handler() -> None:
    """A definition that names a handler beginning with '$' is refused: errands of runs are done by that."""
    with pytest.raises(DefinitionError) as caught:
        Saga("s").step("work", "$engine").build()
    assert [each.code for each in caught.value.diagnostics] == ["reserved_handler"]


def test_no_application_takes_the_engines_own_handler() -> None:
    """Registering a handler beginning with '$' is refused with the reason."""
    with Engine("sqlite://") as engine, pytest.raises(ConfigurationError, match="kept for the engine"):
        engine.handle("$people", print)
