"""The repository itself, as seen by the tests that judge its shape."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "standfast"
PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(ROOT / "src")])
"""Where programs that tests start find what tests find."""


def load_generator() -> ModuleType:
    """The script docs/generate.py as a module."""
    return load_script("generate")


def load_script(name: str) -> ModuleType:
    """A script of the folder docs as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
