"""Files of workflows beside what is published of them: what is in a file, and what publishing it would come to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from standfast.calls.catalog.definitions import version_age
from standfast.calls.context import CallContext
from standfast.errors import (
    ConfigurationError,
    DefinitionError,
    Diagnostic,
    NotFoundError,
    PayloadError,
    StandfastError,
    brief,
)
from standfast.expressions.model.suggestions import suggestion
from standfast.features.definitions.diff import DefinitionChange, compared, compared_words
from standfast.features.process_files.loading import load_processes
from standfast.features.rules import load_rules
from standfast.graph.definition import Definition, definition_of
from standfast.graph.model import KINDS, Graph
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.store.records.instances import InstanceQuery
from standfast.store.records.queries import PublishedDefinition

_COUNTED = 10_000
"""So many live runs of a version are counted at most."""
_PAGE = 1000
_ANOTHER = "give it another version to have that published"


class LiveRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a published version that have not ended."""

    version: str
    runs: int
    is_counted_out: bool = True
    """Whether there are no more than were counted."""

    def __str__(self) -> str:
        return f"{self.runs}{'' if self.is_counted_out else ' or more'} of version {self.version}"


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing one workflow of a file comes to."""

    name: str
    version: str
    what: Literal["new", "new version", "unchanged", "refused"]
    why: str
    live: list[LiveRuns]
    """Of all versions that are published, those that have live runs."""
    untaken: list[str] = []
    """Of one that is unchanged: what is said otherwise in the file, such as `title`, and stays as it was published."""


class FilePublication(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file of workflows: all of it is published, or nothing."""

    is_published: bool
    workflows: list[Prospect]
    warnings: list[Diagnostic] = []
    """What is odd about them, each with its place."""


class FileCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a file of workflows, and all that is wrong or odd about it, each with its place."""

    is_valid: bool
    workflows: list[str]
    """Their ids, such as `order-v1`; none if something is wrong."""
    findings: list[Diagnostic]
    warnings: list[Diagnostic]


class FileChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How a workflow, of a file or published, differs from a published version of it."""

    name: str
    before: str
    """The version that it is compared with."""
    after: str
    changes: list[DefinitionChange]


def definitions_of(text: bytes, name: str) -> list[Definition]:
    """The workflows of a file: processes in YAML or JSON, rules or a graph in JSON; DefinitionError with every mistake."""
    match _top(text):
        case {"workflow_id": _}:
            return [load_rules(text)]
        case {"nodes": _, "entry": _}:
            return [definition_of(text)]
        case _:
            return load_processes(text, name=name)


def _top(text: bytes) -> object:
    """What a file of JSON says at its top; None if it is none, and then it is one of processes, or nothing."""
    if not text.lstrip().startswith(b"{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def checked_file(given: object) -> bytes:
    """The text of a file."""
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass")
    if isinstance(given, bytes):
        return given
    raise PayloadError(f"a file of workflows is given as its text, not as {brief(given)}")


def taken(error: ConfigurationError) -> Diagnostic:
    """That a workflow cannot be published because of what there is already."""
    return Diagnostic("name_taken", str(error), "name")


def file_check(desk: CallContext, text: bytes, name: str, check: Callable[[Graph], None]) -> FileCheck:
    """What is in a file, and all that is wrong or odd about it; `check` refuses what cannot be beside what there is."""
    try:
        found = definitions_of(text, name)
        for each in found:
            check(each.graph)
    except DefinitionError as error:
        return FileCheck(is_valid=False, workflows=[], findings=list(error.diagnostics), warnings=[])
    except ConfigurationError as error:
        return FileCheck(is_valid=False, workflows=[], findings=[taken(error)], warnings=[])
    warnings = warnings_in(desk, found)
    return FileCheck(is_valid=True, workflows=[each.id for each in found], findings=[], warnings=warnings)


def warnings_in(desk: CallContext, found: Sequence[Definition]) -> list[Diagnostic]:
    """What is odd about the workflows of a file."""
    return [*(each for one in found for each in one.warnings), *_unhandled(desk, found)]


def _unhandled(desk: CallContext, found: Sequence[Definition]) -> Iterator[Diagnostic]:
    """Steps whose handler no live worker has. While no worker is alive, nothing can be said about it."""
    shared = desk.service.shared
    moment = shared.clock.judge()
    workers = desk.service.survey(lambda parts: parts.workers().live(moment))
    known = {name for each in workers for name in each.handlers if not name.startswith(SYSTEM_PREFIX)}
    for each in found if workers else ():
        for handler in sorted(each.graph.handlers - known - set(shared.handlers.names())):
            told = suggestion(handler, sorted(known)) or "; its steps wait until a worker has it"
            yield Diagnostic("no_handler", f"no live worker has the handler {handler!r} of {each.name!r}{told}")


def prospect_of(desk: CallContext, definition: Definition) -> Prospect:
    """What would become of a workflow. The versions that count are those that the tenant sees."""
    listed = desk.registry.library.listed(desk.tenant)
    before = [each for each in listed if each.name == definition.name]
    what, why = _verdict(definition, before)
    untaken = _untaken(desk, definition) if what == "unchanged" else []
    if untaken:
        why = f"it is published already, and {joined(untaken)} not taken: a published version never changes; {_ANOTHER}"
    versions = dict.fromkeys(each.version for each in before)
    live = [each for each in (_live(desk, definition.name, version) for version in versions) if each.runs]
    return Prospect(name=definition.name, version=definition.version, what=what, why=why, live=live, untaken=untaken)


def refused_by(prospect: Prospect, error: DefinitionError | ConfigurationError) -> Prospect:
    """The prospect of a workflow that cannot be published because of what there is."""
    if prospect.what == "refused":
        return prospect
    found = error.diagnostics if isinstance(error, DefinitionError) else [taken(error)]
    return msgspec.structs.replace(prospect, what="refused", why="; ".join(each.message for each in found))


def _untaken(desk: CallContext, definition: Definition) -> list[str]:
    """What a file says otherwise of a workflow that is published with the same graph."""
    said = words_of(desk, definition.name, definition.version)
    return [name for name, word in definition.words.items() if said and word != said.get(name, "")]


def joined(names: Sequence[str]) -> str:
    """Names in a sentence, with the verb that follows them."""
    return f"its {' and '.join(names)} {'is' if len(names) == 1 else 'are'}"


def words_of(desk: CallContext, name: str, version: str) -> Mapping[str, str]:
    """What was said of a version when it was published, as far as it was published from a file."""
    stored = desk.registry.library.kept(desk.tenant, name, version)
    if stored is None or not stored.source:
        return {}
    try:
        found = definitions_of(stored.source, name)
    except StandfastError:  # Another release took such files.
        return {}
    return next((each.words for each in found if (each.name, each.version) == (name, version)), {})


def _verdict(
    definition: Definition, before: Sequence[PublishedDefinition]
) -> tuple[Literal["new", "new version", "unchanged", "refused"], str]:
    same = [each for each in before if each.version == definition.version]
    newer = [each.version for each in before if version_age(each.version) > version_age(definition.version)]
    if any(each.hash != definition.graph.hash for each in same):
        return "refused", f"version {definition.version} was published with another content"
    if same:
        return "unchanged", "it is published already"
    if newer:
        return "new version", f"it is not the newest: new runs still take {max(newer, key=version_age)}"
    if before:
        return "new version", "new runs take it; live ones stay with their version"
    return "new", "nothing of its name is published"


def _live(desk: CallContext, name: str, version: str) -> LiveRuns:
    """How many there are is for whoever may publish, and tells nothing of any."""
    reader = desk.service.store.reader(desk.tenant)
    query = InstanceQuery(
        definition=name, definition_version=version, kinds=KINDS, statuses=("running", "paused"), limit=_PAGE
    )
    count = 0
    while count < _COUNTED:
        page = reader.instances(query)
        count += len(page)
        if len(page) < _PAGE:
            return LiveRuns(version=version, runs=count)
        query = msgspec.structs.replace(query, before=page[-1].id)
    return LiveRuns(version=version, runs=count, is_counted_out=False)


def refused_file(name: str, prospects: Sequence[Prospect]) -> DefinitionError:
    """Why nothing of a file is published: what was published under a name and version never changes."""
    return DefinitionError(
        name,
        [
            Diagnostic(
                "already_published", f"{each.name}: {each.why}; give what was changed another version", each.name
            )
            for each in prospects
            if each.what == "refused"
        ],
    )


def file_changes(desk: CallContext, definition: Definition, version: str) -> FileChanges:
    """How a workflow of a file differs from a published version, the newest if none is named."""
    before = desk.registry.library.graph(desk.tenant, definition.name, version)
    return FileChanges(
        name=definition.name,
        before=before.version,
        after=definition.version,
        changes=[
            *compared_words(words_of(desk, before.name, before.version), definition.words),
            *compared(before, definition.graph),
        ],
    )


def picked(found: Sequence[Definition], workflow: str) -> Definition:
    """The workflow of a file that is meant."""
    if not workflow and len(found) == 1:
        return found[0]
    names = [each.name for each in found]
    if not workflow:
        raise PayloadError(f"the file has {len(found)} workflows; say which one: {', '.join(names)}")
    for each in found:
        if workflow in {each.name, each.id}:
            return each
    raise NotFoundError("workflow", workflow, hint=f"the file has {', '.join(names)}{suggestion(workflow, names)}")
