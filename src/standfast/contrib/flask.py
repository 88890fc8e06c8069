"""Standfast in a Flask application: `standfast = Standfast(register)`, and `standfast.init_app(app)` in the factory.

`app.config` sets STANDFAST_DATABASE, STANDFAST_TENANT and STANDFAST_SETTINGS. `flask standfast …` is the command line,
worker included.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import click
from flask import Flask, Response, current_app, has_app_context, request
from flask.cli import ScriptInfo

from standfast.app.engine import Engine
from standfast.contrib.embedded_cli import configuration_of, run_command
from standfast.contrib.error_responses import answer_of
from standfast.engine.common.interceptors import CallFacts, CallInterception, Interceptor
from standfast.errors import ConfigurationError, StandfastError

_NAME = "standfast"
_KEYS = ("database", "tenant", "settings")


class _State:
    """The state of one application."""

    def __init__(self, register: Callable[[Engine], object] | None) -> None:
        self.register = register
        self.engine: Engine | None = None
        self.process = 0
        self.lock = threading.Lock()


class _Within:
    """The application context around one handler call."""

    trace = ""

    def __init__(self, app: Flask) -> None:
        self._context = app.app_context()
        self._context.push()

    def ended(self, error: BaseException | None, /) -> None:
        """Pop the context after the call, on the same thread or in the same task, which tears it down."""
        self._context.pop(error)


class _Contexts(Interceptor):
    """Calls handlers within the application context, for `current_app` and the sessions of extensions."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def call(self, facts: CallFacts) -> CallInterception:
        """Push the context before a handler call."""
        del facts
        return _Within(self._app)


class Standfast:
    """The Flask extension. `register` is called with each opened engine, and registers its workflows."""

    def __init__(self, register: Callable[[Engine], object] | None = None, app: Flask | None = None) -> None:
        self._register = register
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Initialise an application; ConfigurationError if its configuration is invalid."""
        if _NAME in app.extensions:
            raise ConfigurationError(f"{app.name!r} has the extension already; call init_app once for each application")
        configuration_of(told(app))
        app.extensions[_NAME] = _State(self._register)
        app.cli.add_command(command)

    @property
    def engine(self) -> Engine:
        """Return the engine of the current application in this process, opened on first use; it takes commands, and workers work."""
        app = current_app
        state = _state(app)
        with state.lock:
            if state.engine is None or state.process != os.getpid():
                state.engine, state.process = _opened(app), os.getpid()
            return state.engine

    def use(self, engine: Engine | None) -> None:
        """Replace the engine of the current application, for example by one with a manual clock."""
        state = _state(current_app)
        if engine is not None:
            engine.accompany(_Contexts(_current()))
        with state.lock:
            state.engine, state.process = engine, os.getpid()


def answer_error(error: StandfastError) -> Response:
    """Answer an engine error as the HTTP API does: `app.register_error_handler(StandfastError, answer_error)`.

    A fault of the application itself stays an exception.
    """
    told = answer_of(error, request.method, request.path, request.headers.get("traceparent"))
    if told is None:
        raise error
    return Response(told.body, status=told.status, headers=told.headers, content_type=told.media_type)


def told(app: Flask) -> dict[str, object]:
    """Return the engine options of an application's configuration."""
    found = {key: app.config.get(f"STANDFAST_{key.upper()}") for key in _KEYS}
    return {key: value for key, value in found.items() if value is not None}


def register(engine: Engine) -> None:
    """Register the application's workflows on an engine; for workers, which find this function by name and the application by FLASK_APP."""
    app = current_app if has_app_context() else ScriptInfo(os.environ.get("FLASK_APP")).load_app()
    with app.app_context():
        engine.accompany(_Contexts(_current()))
        add = _state(app).register
        if add is not None:
            add(engine)


@click.command(_NAME, context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Run the Standfast command line on the application's database."""
    info = context.ensure_object(ScriptInfo)
    if info.app_import_path:
        os.environ.setdefault("FLASK_APP", info.app_import_path)
    app = info.load_app()
    with app.app_context():
        run_command(words, told(app), program="flask standfast", app="standfast.contrib.flask:register")


def _current() -> Flask:
    """Return the current application object, for threads without a context."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the only way to it
    return app


def _state(app: Flask) -> _State:
    try:
        state: _State = app.extensions[_NAME]
    except KeyError:
        raise ConfigurationError(f"{app.name!r} has no engine; call Standfast().init_app(app) in its factory") from None
    return state


def _opened(app: Flask) -> Engine:
    configuration = configuration_of(told(app))
    engine = Engine(configuration.database, settings=configuration.settings, tenant=configuration.tenant)
    try:
        register(engine)
    except BaseException:
        engine.stop()
        raise
    return engine
