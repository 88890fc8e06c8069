"""Programs that the command line starts: Graphviz, and workers. Nothing else of the package starts any."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from standfast.errors import ConfigurationError

_DRAWING_SECONDS: Final = 60


def svg_of(dot: str) -> str:
    """A drawing in Graphviz's language as SVG; ConfigurationError if Graphviz is not installed, or fails."""
    program = shutil.which("dot")
    if program is None:
        raise ConfigurationError(
            "SVG is drawn by Graphviz, and there is no program `dot` here; install Graphviz, or take --format dot or mermaid"
        )
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system, and no word of the drawing is an argument
            [program, "-Tsvg"], input=dot, capture_output=True, text=True, timeout=_DRAWING_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"Graphviz could not draw it: {error}; take --format dot instead") from error
    if done.returncode:
        raise ConfigurationError(f"Graphviz could not draw it: {done.stderr.strip()}; take --format dot instead")
    return done.stdout


class Subprocess:
    """A child process. It ends when its standard input closes, so that it cannot outlive its parent."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=dict(environment))  # noqa: S603 - the command itself
        self.pid = self._process.pid

    def ended(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it lives."""
        return self._process.poll()

    def ask(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def end(self, patience: float) -> bool:
        """Wait for its end, then kill it; return whether it ended in time."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Let go of it."""
        if self._process.stdin is not None:
            self._process.stdin.close()


def start_worker(environment: Mapping[str, str]) -> Subprocess:
    """Another process of this very command that works."""
    return Subprocess([sys.executable, "-m", "standfast.cli", "worker", "--supervised"], environment)
