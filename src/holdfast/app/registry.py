"""Which definitions this process knows, and the programs that run them."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import ConfigurationError, NotFoundError
from holdfast.kernel.decider import Decider
from holdfast.kernel.program import Program
from holdfast.kernel.wire import Codec

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")


class Registry:
    """Programs by the name of their definition."""

    def __init__(self, codec: Codec, *, limit: int) -> None:
        self._codec = codec
        self._limit = limit
        self._programs: dict[str, Program] = {}

    def add(self, decider: Decider[S, C, E, F]) -> Program:
        """Make a decider known; there can be only one of a type."""
        program = Program(decider, self._codec, limit=self._limit)
        if program.type in self._programs:
            raise ConfigurationError(f"there is already a decider of type {program.type!r}")
        self._programs = {
            **self._programs,
            program.type: program,
        }  # Replaced whole: other threads read it without a lock.
        return program

    def get(self, name: str, version: str = "", /) -> Program:  # noqa: ARG002 - deciders have one version, the code
        """The program of a definition."""
        try:
            return self._programs[name]
        except KeyError:
            known = ", ".join(sorted(self._programs)) or "none"
            raise NotFoundError("decider", name, hint=f"register it first; registered are: {known}") from None

    def names(self) -> set[str]:
        """The names of all definitions."""
        return set(self._programs)
