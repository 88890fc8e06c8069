"""The app, as Django finds it."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks

from holdfast.contrib.django.databases import is_out_of_reach, remember_names
from holdfast.contrib.django.engines import alias_of_project, told
from holdfast.contrib.programs import configuration_of
from holdfast.errors import HoldfastError


class HoldfastConfig(AppConfig):  # type: ignore[misc]
    """Holdfast as an app. It has no models: the engine keeps its own schema."""

    name = "holdfast.contrib.django"
    label = "holdfast"
    verbose_name = "Holdfast"

    def ready(self) -> None:
        """Have `manage.py check` look at the settings, and keep what the databases are called before a test runner comes."""
        remember_names()
        checks.register(check_settings)


def check_settings(app_configs: object, **_options: object) -> list[checks.CheckMessage]:
    """Whether HOLDFAST in the settings of the project says what can be."""
    del app_configs
    try:
        # A test runner has Django keep the database in memory: the engines of such tests are their own.
        configuration_of(told("sqlite://" if is_out_of_reach(alias_of_project()) else ""))
    except HoldfastError as error:
        return [checks.Error(str(error), hint="see settings.HOLDFAST", id="holdfast.E001")]
    return []
