"""Being nobody for a while: root ignores the permissions of files, so a test of those must not be root."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block without root's rights; does nothing for whoever has none."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those that pytest makes."""
    folder = Path(tempfile.mkdtemp(prefix="standfast-test-"))
    try:
        folder.chmod(0o777)
        yield folder
    finally:
        folder.chmod(0o777)
        shutil.rmtree(folder)
