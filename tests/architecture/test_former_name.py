"""The project had another name before its first release; nothing of it is left."""

from __future__ import annotations

import re
import subprocess

from support.repository import ROOT

FORMER = "hold" + "fast"
TRACE = re.compile(rf"{FORMER}|hold[ _-]fast|(?<![a-z0-9])h{'f'}s?_|[\"']h{'f'}s?[\"']", re.IGNORECASE)
"""The former name in any case, and the former prefixes of keys and sessions."""


def tracked() -> list[str]:
    """The paths of all files of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


def test_nothing_has_the_former_name() -> None:
    """No path and no text of the repository has the former name of the project, and no key begins as keys did under it."""
    found = []
    for path in tracked():
        if TRACE.search(path):
            found.append(path)
        lines = (ROOT / path).read_bytes().decode("utf-8", "replace").splitlines()
        found += [f"{path}:{number} {line.strip()[:80]}" for number, line in enumerate(lines, 1) if TRACE.search(line)]
    assert found == []
