"""When a compiled workflow may be used by a compiler of another version.

New documents begin only with what this very compiler made. Open ones run a graph, and stay with it whatever compiled it; of an artifact whose form,
which the major version stands for, has changed nothing but that graph can be used. Two artifacts run alike if their graphs are the same byte for byte.
"""

from __future__ import annotations

from typing import Final

from standfast.errors import Diagnostic
from standfast.features.documents.compiler.artifact import Effective

COMPILER_VERSION: Final = "1.2.0"
"""Major: the form of the artifact; minor: what is compiled to what; patch: neither."""
STALE: Final = "WORKFLOW_COMPILER_STALE"
GRAPH_CHANGED: Final = "graph_changed"


def start_problem(compiled_by: str, engine: str = COMPILER_VERSION) -> Diagnostic | None:
    """Why no document may begin with a workflow that this compiler made; None if one may."""
    return None if compiled_by == engine else _stale("no document can begin with it", compiled_by, engine)


def advance_problem(compiled_by: str, engine: str = COMPILER_VERSION) -> Diagnostic | None:
    """Why an open document cannot go on with a workflow that this compiler made; None if it can."""
    if _major(compiled_by) == _major(engine):
        return None
    return _stale("open documents cannot go on with it", compiled_by, engine)


def is_older(compiled_by: str, engine: str = COMPILER_VERSION) -> bool:
    """Whether a workflow is to be compiled again: what a newer compiler made is left to the processes that have it, or the two would take turns."""
    return compiled_by != engine and not _is_newer(compiled_by, engine)


def repin_problem(old: Effective, new: Effective) -> Diagnostic | None:
    """Why open documents cannot be moved from one compiled workflow to another; None if they can."""
    if old.graph_hash == new.graph_hash:
        return None
    message = "the workflow that was compiled again is another one, so open documents stay with theirs; let them end, or migrate them"
    return Diagnostic(GRAPH_CHANGED, message, new.entity_type)


def _stale(what: str, compiled_by: str, engine: str) -> Diagnostic:
    hint = (
        "run this process with that version"
        if _is_newer(compiled_by, engine)
        else "compile it again with `bodies.recompile`, or with `contracts.recompile` if it has no body"
    )
    return Diagnostic(
        STALE, f"the workflow was compiled by version {compiled_by}, and this is version {engine}: {what}; {hint}"
    )


def _is_newer(compiled_by: str, engine: str) -> bool:
    return _numbers(compiled_by) > _numbers(engine)


def _numbers(version: str) -> list[int]:
    """A version to be compared; one that is no version is older than all."""
    parts = version.split(".")
    return [int(each) for each in parts] if all(each.isascii() and each.isdigit() for each in parts) else []


def _major(version: str) -> str:
    return version.split(".", 1)[0]
