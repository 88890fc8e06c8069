"""Temporary folders that name their owner, so that what a killed process left behind can be told from what is in use."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from devserver.programs import Account
from standfast.errors import ConfigurationError

MEMORY = Path("/dev/shm")  # noqa: S108 - a private folder is made below it
NO_EXECUTION = getattr(os, "ST_NOEXEC", 0)
ROOMY_BYTES = 1 << 30
LONGEST_BASE = 60
"""A unix socket's path is limited to about 100 characters; the rest is for the folder's and the socket's own name."""

_NAME = re.compile(r"standfast-(\d+)-\w+")


def make_folder(account: Account, *, in_memory: bool = False, executable: bool = False) -> Path:
    """A new private folder of the account, named after this process; in memory if wished and if there is room."""
    for base in _bases(account):
        if base == MEMORY and not (in_memory and shutil.disk_usage(base).free >= ROOMY_BYTES):
            continue
        if executable and os.statvfs(base).f_flag & NO_EXECUTION:
            continue
        folder = Path(tempfile.mkdtemp(prefix=f"standfast-{os.getpid()}-", dir=base))
        os.chown(folder, account.uid, account.gid)
        return folder
    raise ConfigurationError("no temporary folder that the server can use: set TMPDIR to one with a short path")


def sweep_folders(account: Account) -> None:
    """Remove the folders of processes that have ended; those of living ones are never touched."""
    for base in _bases(account):
        for folder in base.glob("standfast-*"):
            match = _NAME.fullmatch(folder.name)
            if match and not is_alive(int(match[1])) and _belongs_to(folder, account):
                shutil.rmtree(folder, ignore_errors=True)


def _bases(account: Account) -> Iterator[Path]:
    """Existing places for temporary files that both this process and the account can use, the best first."""
    wanted = (MEMORY, Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - see MEMORY
    for base in dict.fromkeys(wanted):
        usable = base.is_dir() and os.access(base, os.W_OK | os.X_OK) and len(str(base)) <= LONGEST_BASE
        if usable and (account.is_ours or account.may_enter(base)):
            yield base


def _belongs_to(folder: Path, account: Account) -> bool:
    try:
        return folder.lstat().st_uid == account.uid
    except FileNotFoundError:
        return False


def is_alive(pid: int) -> bool:
    """Whether a process with this id exists, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
