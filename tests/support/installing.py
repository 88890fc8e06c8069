"""Distributions that are really installed, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

_MODULE = """
from standfast import Invoker

class Soap(Invoker):
    def operations(self):
        return ["submit"]

    def invoke(self, invocation):
        return {"said": f"soap for {invocation.tenant}"}

def broken():
    raise RuntimeError("no licence")

def wrong():
    return 7
"""


def install_invoker(folder: Path, name: str) -> None:
    """A distribution with an invoker of this name, and two entry points that bring none, `broken` and `wrong`. The folder goes on sys.path."""
    module = f"{name}_for_tests"
    (folder / f"{module}.py").write_text(_MODULE, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    points = {name: "Soap", "broken": "broken", "wrong": "wrong"}
    lines = "".join(f"{point} = {module}:{made}\n" for point, made in points.items())
    (info / "entry_points.txt").write_text(f"[standfast.invokers]\n{lines}", encoding="utf-8")
