"""The Django app configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks

from standfast.contrib.django.databases import is_out_of_reach, remember_names
from standfast.contrib.django.engines import alias_of_project, told
from standfast.contrib.embedded_cli import configuration_of
from standfast.errors import StandfastError


class StandfastConfig(AppConfig):  # type: ignore[misc]
    """Standfast as an app. It has no models: the engine keeps its own schema."""

    name = "standfast.contrib.django"
    label = "standfast"
    verbose_name = "Standfast"

    def ready(self) -> None:
        """Register the system check of the settings, and record the database names before a test runner changes them."""
        remember_names()
        checks.register(check_settings)


def check_settings(app_configs: object, **_options: object) -> list[checks.CheckMessage]:
    """Check STANDFAST in the project's settings."""
    del app_configs
    try:
        # A test runner keeps the database in memory: engines of such tests open their own.
        configuration_of(told("sqlite://" if is_out_of_reach(alias_of_project()) else ""))
    except StandfastError as error:
        return [checks.Error(str(error), hint="see settings.STANDFAST", id="standfast.E001")]
    return []
