"""`standfast init` and `standfast dev`: a project to begin with, and everything of it in one process."""

from __future__ import annotations

import logging
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click

from standfast.app.configuration import DEFAULT, FLAG
from standfast.app.engine import Engine
from standfast.app.signals import GracefulShutdown
from standfast.cli.admin.serve import check_extra, options_of
from standfast.cli.applications import equip, found_in
from standfast.cli.framework import verb
from standfast.cli.logs import begin_logs, log_option, tell_calls
from standfast.cli.target import Target, database_scope, hidden_password
from standfast.errors import ConfigurationError

if TYPE_CHECKING:
    from standfast.http import HttpOptions

_PROJECT: Final = "cli/develop/samples/project"
_SAMPLES: Final = "standfast.cli.develop.samples.project.workflows"
_NAMES: Final = {"gitignore": ".gitignore"}
"""Files that have another name in a project than here, where they would mean something."""
_HOW: Final = "give module:attribute, such as workflows:register"
_FOLDER: Final = "standfast-dev"
_CHANGED: Final = "was published before with another content"


@verb("init", "standfast init shop", "standfast init .")
@click.argument("folder", type=click.Path(file_okay=False))
def init(folder: str) -> None:
    """Create a project in FOLDER that runs: sample workflows, tests and a configuration."""
    target = Path(folder)
    files = {_NAMES.get(each.name, each.name): each for each in _files()}
    taken = [name for name in files if (target / name).exists()]
    if taken:
        raise ConfigurationError(
            f"{folder} has {', '.join(sorted(taken))} already, and nothing was written; say another folder"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            (target / name).write_bytes(file.read_bytes())
    except OSError as error:
        told = "name a folder that you may write to"
        raise ConfigurationError(f"the project cannot be written into {folder}: {error.strerror}; {told}") from error
    click.echo(f"a project is in {folder}: {', '.join(sorted(files))}")
    click.echo(f"next: cd {shlex.quote(folder)} && standfast dev", err=True)


@verb("dev", "standfast dev", "standfast dev --port 0 --app shop.workflows:register")
@click.option("--port", "serve_port", type=click.IntRange(0, 65535), help="The port; 0 takes one that is free.")
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="The application, as for a worker; samples by default.")
@log_option
@click.option(
    "--folder",
    help=f"The database, whatever is configured elsewhere; {_FOLDER} by default.",
)
@database_scope
def dev(place: Target, *, folder: str | None) -> None:
    """Run server and worker in one process, for development: no key is needed, and only this machine can connect.

    Without an application it runs samples of every kind, with some active runs. It uses a database only if --database
    names it. Ctrl-C ends it; the data remains.
    """
    begin_logs(place, level=logging.WARNING)
    logging.getLogger("standfast.http.access").setLevel(logging.ERROR)  # The insecure mode is printed below.
    check_extra()
    told = place.configuration
    options = options_of(told.serve)
    kept, where = _home(place, folder)
    engine = Engine(kept, settings=told.settings)
    with GracefulShutdown() as departure:
        try:
            tell_calls(place, engine)
            with _beginning_anew(hidden_password(kept)):
                equip(engine, told.app or f"{_SAMPLES}:register")
            engine.start_worker()
            if not told.app:
                _begin(engine)
            _serve(engine, options, port=_port(place), where=where, app=told.app)
        finally:
            departure.begin()
            engine.stop()
    click.echo(f"ended; the data are kept in {where}")


@contextmanager
def _beginning_anew(url: str) -> Iterator[None]:
    """Explain a conflict with a published version, and how to start over: in development workflows change often."""
    try:
        yield
    except ConfigurationError as error:
        if _CHANGED not in str(error):
            raise
        raise ConfigurationError(
            f"{error}. Or begin anew, without the data: `standfast drop {url} --yes --with-unfinished`"
        ) from error


def _serve(engine: Engine, options: HttpOptions, *, port: int, where: str, app: str) -> None:
    from standfast.http import serve

    def ready(address: str) -> None:
        click.echo(
            f"""standfast is at {address}

  see the runs      curl {address}/api/v1/executions
  or with           {called()} list --server {address}
  every address     {address}/openapi.json
  it runs           {app or "samples: order, expense, purchases.approval, discount, claim, trial"}
  login             none: authentication is off (development mode), and only this machine can connect
  the data          {where}

Ctrl-C ends it."""
        )

    serve(engine, options, port=port, insecure_dev=True, on_ready=ready)


def called() -> str:
    """How this command is called in a shell: by its name, or where an environment has it that no shell knows."""
    if shutil.which("standfast"):
        return "standfast"
    beside = Path(sys.executable).with_name("standfast")
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(sys.executable)} -m standfast.cli"


def _port(place: Target) -> int:
    """Return the given port, else the usual one, or a free one if the usual one is taken."""
    port = place.configuration.serve.port
    if place.source.origins["serve", "port"] != DEFAULT:
        return port
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            line.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def _home(place: Target, folder: str | None) -> tuple[str, str]:
    """The database that is worked on, and where it is for people to read. Samples come into one that is there by no accident."""
    rank = place.source.rank("database")
    if folder is not None and rank == FLAG:
        raise ConfigurationError("--folder and --database say two places; leave one of them out")
    if folder is not None or not rank:
        folder = folder or _FOLDER
        return _kept(folder), str(Path(folder).resolve())
    if rank != FLAG and not place.configuration.app:
        raise ConfigurationError(
            f"{place.source.origins['database',]} names a database, but no application is given; "
            "say --app, or have samples in a folder by --folder, or in a database by --database"
        )
    return place.url, place.shown_url


def _kept(folder: str) -> str:
    """The database in a folder, which is made if it is not there."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the data cannot be kept in {folder}: {error.strerror}; say --folder") from error
    return f"sqlite:///{quote(str(Path(folder) / 'standfast.db'))}"


def _begin(engine: Engine) -> None:
    begin = found_in(f"{_SAMPLES}:begin", _HOW)
    assert callable(begin)
    begin(engine)


def _files() -> list[Traversable]:
    folder = resources.files("standfast").joinpath(_PROJECT)
    return [each for each in folder.iterdir() if each.is_file() and not each.name.endswith(".pyc")]
