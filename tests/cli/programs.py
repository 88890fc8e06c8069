"""Programs of the command line that tests start, ask over HTTP, and end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from support.repository import ROOT


class Program:
    """A process; what it says is read line by line."""

    def __init__(self, *command: str, environment: Mapping[str, str] | None = None) -> None:
        told = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})}
        self.process = subprocess.Popen(
            list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=told
        )

        self._deaf: threading.Thread | None = None

    def hear(self, pattern: str) -> re.Match[str]:
        """The next line that says this; a program that ends before has failed."""
        return self._heard(pattern)[0]

    def heard(self, pattern: str) -> tuple[str, str]:
        """What the next line says that says this, and all that was said before it."""
        match, told = self._heard(pattern)
        return match[1], told

    def _heard(self, pattern: str) -> tuple[re.Match[str], str]:
        told = ""
        for line in self._said:
            told += line
            if (match := re.search(pattern, line)) is not None:
                return match, told
        raise AssertionError(told)

    @property
    def _said(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def processor_seconds(self) -> float:
        """How long it has computed; other programs on the machine do not count."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - no file of this repository
            told = file.read().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end; its exit code, and what it said last."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for its end; its exit code, and what it said last."""
        rest = self._said.read()
        return self.process.wait(timeout=60), rest

    def ignore(self) -> None:
        """Let it say whatever it likes from now on; nobody listens, and it never waits for that."""
        self._deaf = threading.Thread(target=self._said.read, daemon=True)
        self._deaf.start()

    def close(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        if self._deaf is not None:
            self._deaf.join(60)
        self._said.close()


@contextmanager
def standfast_program(*words: str, **environment: str) -> Iterator[Program]:
    """The command as a process of its own."""
    program = Program(sys.executable, "-m", "standfast.cli", *words, environment=environment)
    try:
        yield program
    finally:
        program.close()
