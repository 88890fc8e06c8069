"""The app, as Django finds it."""

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
        """Have `manage.py check` look at the settings, and keep what the databases are called before a test runner comes."""
        remember_names()
        checks.register(check_settings)


def check_settings(app_configs: object, **_options: object) -> list[checks.CheckMessage]:
    """Whether STANDFAST in the settings of the project says what can be."""
    del app_configs
    try:
        # A test runner has Django keep the database in memory: the engines of such tests are their own.
        configuration_of(told("sqlite://" if is_out_of_reach(alias_of_project()) else ""))
    except StandfastError as error:
        return [checks.Error(str(error), hint="see settings.STANDFAST", id="standfast.E001")]
    return []
