"""Projects of Django in folders of their own, whose programs are run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

from support.repository import ROOT


def database(url: str) -> dict[str, str]:
    """A database as Django's settings name it."""
    if url.startswith("sqlite"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    parts = urlsplit(url)
    told = {"NAME": parts.path.lstrip("/"), "HOST": parts.hostname, "PORT": parts.port, "USER": parts.username}
    return {"ENGINE": "django.db.backends.postgresql", "PASSWORD": parts.password or ""} | {
        name: str(value or "") for name, value in told.items()
    }


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a project."""
    (folder / "shop").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the folder of a project."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "DJANGO_SETTINGS_MODULE": "project"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110
    )
