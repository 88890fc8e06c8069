"""The application of a worker: an attribute of a user's module, given as `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable

from standfast.app.engine import Engine
from standfast.errors import ConfigurationError, StandfastError
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.definition import Definition, TypedDefinition
from standfast.kernel.decider import Decider

_HOW = "give module:attribute, such as shop.workflows:register"


def equip(engine: Engine, app: str) -> None:
    """Register an application on an engine: a function is called with it, workflows and deciders are registered."""
    if not app:
        raise ConfigurationError(f"a worker needs --app; {_HOW}")
    found = found_in(app, _HOW)
    try:
        if isinstance(found, Definition | TypedDefinition | Decider):
            engine.register(found)
        elif callable(found):
            found(engine)
        elif isinstance(found, Iterable) and not isinstance(found, str | bytes):
            for each in found:
                engine.register(each)
        else:
            engine.register(found)  # type: ignore[call-overload]  # It says what can be registered.
    except StandfastError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{app} failed: {type(error).__name__}: {error}; see the traceback with --debug"
        ) from error


def found_in(app: str, how: str) -> object:
    """Import `module:attribute`; ConfigurationError explains the form if it is missing."""
    module, colon, attribute = app.partition(":")
    if not (module and colon and attribute):
        raise ConfigurationError(f"{app!r} names no application; {how}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # An installed command does not search the working directory.
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigurationError(f"{module} cannot be imported: {error}") from error
        raise ConfigurationError(
            f"there is no module {error.name!r} here; {how}, and start it where it is found"
        ) from error
    except Exception as error:
        raise ConfigurationError(
            f"{module} cannot be imported: {type(error).__name__}: {error}; see the traceback with --debug"
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{module} has no {attribute!r}{suggestion(name, dir(found)) or f'; {how}'}")
        found = getattr(found, name)
    return found
