"""Calls of published workflows: which there are, what they say, what they look like."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from standfast.calls.authorization import check_unbound
from standfast.calls.catalog.definitions import Storing, Writing
from standfast.calls.context import CallContext, checked_flag, checked_text
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.operator_views import ArchivedDefinition, DefinitionCheck, DefinitionInfo, shown
from standfast.calls.references import DefinitionLike, checked_definition
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ConfigurationError, DefinitionError, NotFoundError, StandfastError
from standfast.features.definitions.diff import compared, compared_words
from standfast.features.definitions.dry_run import closed_calls, tried_out
from standfast.features.definitions.files import (
    FileChanges,
    FileCheck,
    FilePublication,
    Prospect,
    checked_file,
    definitions_of,
    file_changes,
    file_check,
    picked,
    prospect_of,
    refused_by,
    refused_file,
    taken,
    warnings_in,
    words_of,
)
from standfast.features.runs.diagrams import Format, drawn
from standfast.features.runs.pauses.pause_points import PausePoint, PauseTrigger, pause_points
from standfast.features.runs.start import check_input
from standfast.features.simulation import DryRun
from standfast.graph.compiler import copy_graph, graph_data
from standfast.graph.definition import Definition, TypedDefinition, definition_of
from standfast.graph.model import Graph
from standfast.kernel.actor import RequestContext
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import SHARED_TENANT, StoredDefinition
from standfast.store.records.queries import Archiving


class _Stored(NamedTuple):
    """Definitions that were stored before a publication, and after it."""

    known: list[StoredDefinition]
    stored: list[StoredDefinition]
    at: datetime


class _SetAside(NamedTuple):
    """What an archival found."""

    was_archived: bool
    is_there: bool


class FutureDefinitions:
    """What can be asked of workflows as they were published."""

    def __init__(self, desk: CallContext, *, owner: RequestContext | None) -> None:
        self._desk = desk
        self._owner = owner
        """For whom workflows are published; None if for all tenants."""

    def publish(
        self, definition: Mapping[str, object] | str | bytes | Definition, *, reason: str = ""
    ) -> Reply[DefinitionInfo]:
        """Publish a workflow that is given as data, a dict or JSON, in the form that `data` gives.

        It is checked like one that was built; its handlers are registered with `engine.handle`. What the engine itself publishes all
        tenants share; what is published on behalf of a request (`acting`, `as_tenant`) belongs to the tenant of that alone. It may have
        the name of a shared one only if that is `replaceable`, and then it asks for the same capabilities and stands before it.
        """

        def write() -> DefinitionInfo:
            made = definition if isinstance(definition, Definition) else definition_of(definition)
            self._check(made.graph)
            library = self._desk.registry.library
            library.publish(made, request=self._owner, write=self._writing(reason))
            found = [each for each in library.listed(self._desk.tenant) if each.name == made.name]
            own = [each for each in found if each.version == made.version]
            return shown(own[-1], DefinitionInfo)

        return self._desk.act(write)

    def validate(self, definition: Mapping[str, object] | str | bytes) -> Reply[DefinitionCheck]:
        """Whether a workflow that is given as data could be published, with every finding; nothing is stored."""

        def check() -> DefinitionCheck:
            try:
                made = definition_of(definition)
                self._check(made.graph)
            except DefinitionError as error:
                return DefinitionCheck(name="", version="", is_valid=False, findings=list(error.diagnostics))
            except ConfigurationError as error:
                return DefinitionCheck(name="", version="", is_valid=False, findings=[taken(error)])
            return DefinitionCheck(name=made.name, version=made.version, is_valid=True, findings=[])

        return self._desk.read(check)

    def publish_file(
        self, text: str | bytes, *, name: str = "the file", check: bool = False, reason: str = ""
    ) -> Reply[FilePublication]:
        """Publish all workflows of a file (processes in YAML or JSON, rules or a graph in JSON), or nothing of it; what becomes of each.

        With `check` it is only told what would, and why not. DefinitionError, with every finding and its place, for a file that is not sound, or one
        with another content under a name and version that are published.
        """

        def write() -> FilePublication:
            found = definitions_of(checked_file(text), checked_text(name, "name"))
            prospects, refusals = self._prospects(name, found)
            if checked_flag(check, "`check`"):
                return FilePublication(is_published=False, workflows=prospects, warnings=warnings_in(self._desk, found))
            if refusals:
                raise refusals[0]
            self._desk.registry.library.publish_all(found, request=self._owner, write=self._writing(reason))
            return FilePublication(is_published=True, workflows=prospects, warnings=warnings_in(self._desk, found))

        return self._desk.act(write)

    def validate_file(self, text: str | bytes, *, name: str = "the file") -> Reply[FileCheck]:
        """What is in a file of workflows, and all that is wrong or odd about it, each with its place; nothing is stored."""
        return self._desk.read(
            lambda: file_check(self._desk, checked_file(text), checked_text(name, "name"), self._check)
        )

    def diff_file(self, text: str | bytes, version: str | int = "", *, workflow: str = "") -> Reply[FileChanges]:
        """How a workflow of a file differs from a published version of it, the newest if none is named; `workflow` names it if there are several."""

        def compare() -> FileChanges:
            found = picked(definitions_of(checked_file(text), "the file"), checked_text(workflow, "workflow"))
            return file_changes(self._desk, found, checked_definition(found.name, version)[1])

        return self._desk.read(compare)

    def diff(self, definition: DefinitionLike, old: str | int, new: str | int = "") -> Reply[FileChanges]:
        """How two published versions of a workflow differ: what the second, the newest if none is named, has that the first has not."""

        def compare() -> FileChanges:
            before, after = self._graph(definition, old), self._graph(definition, new)
            said = [words_of(self._desk, each.name, each.version) for each in (before, after)]
            changes = [*compared_words(*said), *compared(before, after)]
            return FileChanges(name=after.name, before=before.version, after=after.version, changes=changes)

        return self._desk.read(compare)

    def archive(self, definition: DefinitionLike, version: str | int, *, reason: str = "") -> Reply[None]:
        """Take a version out of use: it is listed no more, and nothing new is started with it; runs that there are go on.

        Who did so, when and why is told by `archived`, until it is restored.

        All processes know of it within two seconds. Like `publish`, the engine itself does so to what all tenants share, a request to what is
        its tenant's own. NotFoundError if there is no such version.
        """
        return self._set_aside(definition, version, is_archived=True, reason=reason)

    def restore(self, definition: DefinitionLike, version: str | int, *, reason: str = "") -> Reply[None]:
        """Take a version that was archived into use again."""
        return self._set_aside(definition, version, is_archived=False, reason=reason)

    def archived(self) -> Reply[builtins.list[ArchivedDefinition]]:
        """The versions that are out of use, by name, each oldest first."""
        library = self._desk.registry.library
        return self._desk.read(
            lambda: [shown(each, ArchivedDefinition) for each in library.archived(self._desk.tenant)]
        )

    def _set_aside(
        self, definition: DefinitionLike, version: str | int, *, is_archived: bool, reason: str = ""
    ) -> Reply[None]:
        by, now = self._desk.request.actor.id, self._desk.service.shared.clock.now()

        def write() -> None:
            told = Archiving(by, now, checked_text(reason, "reason")) if is_archived else None
            name, pinned = checked_definition(definition, version)
            owner = SHARED_TENANT if self._owner is None else self._owner.tenant

            def set_aside(parts: StoreParts) -> _SetAside:
                stored = parts.definitions()
                was_archived = (owner, name, pinned) in {each.key for each in stored.archived()}
                return _SetAside(was_archived, stored.archive(owner, name, pinned, told))

            def change(done: _SetAside) -> Change | None:
                if not done.is_there or done.was_archived == is_archived:
                    return None
                action, before = "archive" if is_archived else "restore", {"is_archived": done.was_archived}
                after = {"version": pinned, "is_archived": is_archived}
                return self._desk.changed(
                    "definition", name, action, before=before, after=after, reason=reason, tenant=owner
                )

            check_unbound(self._desk, "definitions")
            is_there = bool(pinned) and self._desk.record(change, set_aside).is_there
            self._desk.registry.library.refresh_archived()
            if not is_there:
                raise NotFoundError("version of a workflow", f"{name} {pinned}".strip(), hint="name one of your own")

        return self._desk.act(write)

    def _writing(self, reason: str) -> Writing:
        """Store definitions with an audit entry for each new one; a version that exists already stays as it is and gets none."""

        def change(done: _Stored) -> builtins.list[Change]:
            # Another process may have stored the same since the first look.
            new = [each for each in done.stored if each not in done.known and each.published_at == done.at]
            return [
                self._desk.changed(
                    "definition",
                    each.name,
                    "publish",
                    after={"version": each.version, "hash": each.hash},
                    reason=reason,
                    tenant=each.tenant,
                )
                for each in new
            ]

        def write(work: Storing, asked: Sequence[StoredDefinition], now: datetime) -> builtins.list[StoredDefinition]:
            def store(parts: StoreParts) -> _Stored:
                side = parts.definitions()
                known = [side.get(each.tenant, each.name, each.version) for each in asked]
                return _Stored([each for each in known if each is not None], work(side), now)

            check_unbound(self._desk, "definitions")
            return self._desk.record(change, store).stored

        return write

    def list(self) -> Reply[builtins.list[DefinitionInfo]]:
        """All published versions of all workflows, by name, each oldest first."""
        library = self._desk.registry.library
        return self._desk.read(lambda: [shown(each, DefinitionInfo) for each in library.listed(self._desk.tenant)])

    def get(self, definition: DefinitionLike, version: str | int = "") -> Reply[Graph]:
        """The published graph of a workflow."""
        return self._desk.read(lambda: copy_graph(self._graph(definition, version)))

    def data(self, definition: DefinitionLike, version: str | int = "") -> Reply[dict[str, object]]:
        """The same as plain data, which can be written as JSON, changed, and published as another version."""
        return self._desk.read(lambda: graph_data(copy_graph(self._graph(definition, version))))

    def diagram(
        self,
        definition: DefinitionLike,
        version: str | int = "",
        *,
        format: Format = "mermaid",  # noqa: A002 - the word that everybody uses for it
    ) -> Reply[str]:
        """A drawing of a workflow, as Mermaid, DOT or JSON; that of a run shows its live state."""
        return self._desk.read(lambda: drawn(self._graph(definition, version), format))

    def pause_points(
        self, definition: DefinitionLike, version: str | int = "", *, trigger: PauseTrigger | Literal[""] = ""
    ) -> Reply[builtins.list[PausePoint]]:
        """The steps at which runs of a workflow rest, each once: for people (`approval`), for an event or a time (`wait`), or for an operator (`manual`).

        `trigger` asks for those of one of these words; PayloadError for any other.
        """
        return self._desk.read(lambda: pause_points(self._graph(definition, version), trigger))

    def dry_run(  # noqa: PLR0913 - all that can be supposed, by name
        self,
        definition: DefinitionLike,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        decisions: Mapping[str, str | Sequence[str]] | None = None,
        forms: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        failing: Sequence[str] = (),
        events: Mapping[str, object] | None = None,
        unanswered: Sequence[str] = (),
    ) -> Reply[DryRun]:
        """Which way a run of a workflow would take, with this input. Nothing is written, nobody is told anything, and no handler is called.

        Everybody who is asked agrees, fills in nothing, and everything that is waited for comes at once and brings nothing; time goes by
        where nothing else happens. Handlers and other workflows answer nothing. What is different is said by name: `decisions` by
        step, an outcome or several of them in turn; `forms` by step, what is filled in; `answers` by handler or workflow, or by
        the step that calls it; `failing` those of them that fail; `events` what events and signals bring; `unanswered` the steps where nobody decides, and the events and
        signals that do not come. PayloadError for a name that the workflow does not have.
        """

        def play() -> DryRun:
            graph = self._graph(definition, version)
            if isinstance(definition, TypedDefinition):
                check_input(plain_data(input, "input", limit=self._desk.payload_limit), definition)
            return self._tried_out(
                graph,
                input,
                {
                    "decisions": decisions,
                    "forms": forms,
                    "answers": answers,
                    "failing": failing,
                    "events": events,
                    "unanswered": unanswered,
                },
            )

        return self._desk.play(play)

    def dry_run_file(  # noqa: PLR0913 - see dry_run
        self,
        text: str | bytes,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        workflow: str = "",
        name: str = "the file",
        decisions: Mapping[str, str | Sequence[str]] | None = None,
        forms: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        failing: Sequence[str] = (),
        events: Mapping[str, object] | None = None,
        unanswered: Sequence[str] = (),
    ) -> Reply[DryRun]:
        """The same for a workflow of a file, which need not be published; `workflow` names it if there are several."""

        def play() -> DryRun:
            found = definitions_of(checked_file(text), checked_text(name, "name"))
            graph = picked(found, checked_text(workflow, "workflow")).graph
            return self._tried_out(
                graph,
                input,
                {
                    "decisions": decisions,
                    "forms": forms,
                    "answers": answers,
                    "failing": failing,
                    "events": events,
                    "unanswered": unanswered,
                },
            )

        return self._desk.play(play)

    def _prospects(
        self, name: str, found: Sequence[Definition]
    ) -> tuple[builtins.list[Prospect], builtins.list[StandfastError]]:
        """What publishing each workflow of a file comes to, and why it is refused."""
        prospects = [prospect_of(self._desk, each) for each in found]
        is_clashing = any(each.what == "refused" for each in prospects)
        refusals: builtins.list[StandfastError] = [refused_file(name, prospects)] if is_clashing else []
        for at, each in enumerate(found):
            try:
                self._check(each.graph)
            except (DefinitionError, ConfigurationError) as error:
                refusals.append(error)
                prospects[at] = refused_by(prospects[at], error)
        return prospects, refusals

    def _check(self, graph: Graph) -> None:
        """Refuse what cannot be published beside what there is."""
        owner = SHARED_TENANT if self._owner is None else self._owner.tenant
        self._desk.registry.check_free(graph, owner)
        self._desk.registry.library.check_calls(owner, graph)

    def _tried_out(self, graph: Graph, given: object, supposition: Mapping[str, object]) -> DryRun:
        desk = self._desk
        return tried_out(
            graph,
            given,
            supposition,
            actor=desk.request.actor,
            settings=desk.service.shared.settings,
            facts=closed_calls(desk.registry.library, desk.tenant, graph),
        )

    def _graph(self, definition: DefinitionLike, version: str | int) -> Graph:
        return self._desk.registry.library.graph(self._desk.tenant, *checked_definition(definition, version))
