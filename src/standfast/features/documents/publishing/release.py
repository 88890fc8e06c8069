"""From a draft to what is in force: compiled, allowed, tried out, and handed to the publisher. And what only is tried out.

Bodies as callers give them, and what comes of the scenarios of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from standfast.calls.context import CallContext, checked_key
from standfast.calls.handlers.step_handlers import plain_data
from standfast.errors import DefinitionError, Diagnostic, PayloadError, indefinite
from standfast.features.definitions.dry_run import player_of, supposed, terms_of
from standfast.features.documents.body.checks import read_body, read_partly
from standfast.features.documents.body.format import ActionNode, Body, export_yaml
from standfast.features.documents.compiler.graph import graph_findings, graph_of
from standfast.features.documents.content.reads import found
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.ids import local_name
from standfast.features.documents.contract.loading import content_hash
from standfast.features.documents.publishing.active_version import active_workflow
from standfast.features.documents.publishing.catalog import (
    Catalog,
    WrittenBody,
    body_of,
    content_of,
    contract_of,
    draft_of,
    is_stale,
    malformed,
)
from standfast.features.documents.publishing.publisher import Compiled, Publisher
from standfast.features.documents.publishing.rejections import RUN_AS, permit
from standfast.features.documents.publishing.service_accounts import account_problems
from standfast.features.documents.publishing.views import BodyVersion
from standfast.features.documents.scenarios.dry_run import dry_run
from standfast.features.documents.scenarios.scenarios import ScenarioResult, failures, run_scenarios
from standfast.features.simulation import DryRun
from standfast.graph.model import Graph
from standfast.machine.documents.visibility import check_all_seen, visible
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.document_commands import CreateDocument
from standfast.store.ports.documents import StoredBlueprint


def written_body(given: object) -> WrittenBody:
    """A body that a caller gives, as a draft keeps it: with its mistakes, as long as it says what it is for; DefinitionError if it does not."""
    text = _text_of(given)
    try:
        body = read_body(text)
    except DefinitionError:
        read = read_partly(text)
        if read.body is None or not isinstance(read.plain, dict) or read.body.hash is not None:
            raise
        try:
            return malformed(read.body, read.plain)
        except PayloadError:  # It holds what no database can keep.
            pass
        raise
    return WrittenBody(body, content_of(body), content_hash(body))


def _text_of(given: object) -> str | bytes:
    if isinstance(given, Body):
        return export_yaml(given)
    if isinstance(given, str | bytes):
        return given
    if isinstance(given, Mapping):
        try:
            return json.dumps(given, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(f"the body cannot be written as JSON: {error}; give plain data") from error
    raise PayloadError(
        f"a body is given as YAML, as JSON, as what read_body gives, or as a dict, not as {indefinite(type(given))}"
    )


def rehearsed(shelf: Catalog, body: Body) -> list[Diagnostic]:
    """The scenarios of a sound body that do not come out as they should."""
    return failures(tried_out(shelf, body))


def tried_out(shelf: Catalog, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body; DefinitionError if it does not compile."""
    return [] if not body.scenarios else played(graph_of(shelf.compiled(shelf.envelope_for(body), body)), body)


def played(graph: Graph, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body, on the graph of it."""
    return run_scenarios(graph, body.scenarios)


class Release:
    """Makes of drafts what documents go through."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        self.shelf = Catalog(desk)
        self._publisher = Publisher(desk, desk.tenant)

    def publish(self, row: StoredBlueprint, *, revision: int | None, replaces: int | None, comment: str) -> BodyVersion:
        """Publish a draft, in the revision that the caller has reviewed."""
        self._publisher.check_reviewed(row, revision)
        return self._publish(row, replaces=replaces, comment=comment)

    def _publish(
        self, row: StoredBlueprint, *, replaces: int | None, comment: str, is_new: bool = False
    ) -> BodyVersion:
        written = draft_of(row)
        body = written.body
        if written.source:
            raise DefinitionError(f"the body of {row.type}", self.shelf.check(body, written.source).problems)
        self._check_run_as(body)
        unknown, _ = account_problems(self._desk, body)
        if unknown:
            raise DefinitionError(f"the body of {row.type}", unknown)
        compiled = self._compiled(row, body, chains=self.shelf.chains())
        late = graph_findings(compiled.effective)
        if late:
            raise DefinitionError(f"the body of {row.type}", late)
        seen = row.replaces or 0 if replaces is None else replaces
        published = self._publisher.publish_body(compiled, replaces=seen, comment=comment, is_new=is_new)
        return self.shelf.version_of(published)

    def roll_back(self, row: StoredBlueprint, comment: str) -> BodyVersion:
        """Publish an older version again; nothing is left behind if it cannot be, whatever happens."""
        self._publisher.check_alone(row)
        told = comment or f"rolled back to version {row.version}"
        draft = self._publisher.drafted(draft_of(row), replaces=self.shelf.in_force(row.type), comment=told)
        return self._publish(draft, replaces=None, comment=told, is_new=True)

    def recompile(self, type_: str, *, is_dry: bool) -> list[BodyVersion]:
        """Compile again what an older version of the compiler has compiled; what others publish, archive or take out of use meanwhile stays so."""
        stale = [each for each in self.shelf.effectives(type_) if each.body is not None and is_stale(self._desk, each)]
        bodies = {each.id: self.shelf.body_row(each.type, 0) for each in stale}
        if not is_dry:
            bodies = {
                former: row
                for former, row in bodies.items()
                if self._publisher.recompile(self._compiled(row, body_of(row)), former)
            }
        return [self.shelf.version_of(each, with_body=False) for each in bodies.values()]

    def _compiled(self, row: StoredBlueprint, body: Body, *, chains: set[str] | None = None) -> Compiled:
        """A body with what it compiles to; DefinitionError if that is nothing, or if a scenario fails."""
        contract = self.shelf.contract_for(body)
        effective = self.shelf.compiled(generate_envelope(contract_of(contract)), body, chains=chains)
        failed = failures(played(graph_of(effective), body)) if body.scenarios else []
        if failed:
            raise DefinitionError(f"the body of {row.type}", failed)
        return Compiled(effective, contract, row)

    def _check_run_as(self, body: Body) -> None:
        """ForbiddenError for steps that act in a name that whoever publishes may not lend."""
        names = {
            node.run_as
            for patch in body.slots.values()
            for node in patch.nodes or ()
            if isinstance(node, ActionNode) and node.run_as != "actor"
        }
        if names:
            what = f"publish steps that act as {', '.join(sorted(names))}"
            permit(self._desk.request.actor, what, RUN_AS)

    # -- trying out

    def dry_run(
        self,
        type_: str,
        data: Mapping[str, object] | None,
        *,
        document: str,
        draft: str,
        given: Mapping[str, object],
    ) -> DryRun:
        """Which way a document would take."""
        graph = self._graph(type_, draft)
        desk, content = self._desk, data
        status, version = "", 1
        if document:
            with desk.reader.look() as reader:
                known = found(desk, reader, type_, document)
            # A workflow that somebody writes, or data that they choose, would tell them step by step what they may not see.
            if draft or data or any(given.get(each) for each in ("answers", "forms", "events")):
                check_all_seen(known.parts.spec, known.document.data, desk.request.actor)
            content = {**known.document.data, **(data or {})}
            status, version = known.document.status, known.document.version
        command = CreateDocument(
            data=plain_data({} if content is None else content, "data", limit=desk.payload_limit),
            status=status,
            version=version,
        )
        made = dry_run(
            graph,
            command,
            player_of(desk.request.actor),
            supposed(graph, given, desk.payload_limit, name=local_name),
            org=plain_data(desk.registry.charters.org_of(desk.tenant), "organisation", limit=desk.payload_limit),
            terms=terms_of(desk.payload_limit),
        )
        # What is for others' eyes in a document stays so when it is tried out.
        seen = visible(graph.document, made.data, desk.request.actor)
        return msgspec.structs.replace(made, data=seen) if document else made

    def _graph(self, type_: str, draft: str) -> Graph:
        if draft:
            row = self.shelf.draft_row(checked_key(draft, "id of a draft"))
            body = body_of(row)
            return graph_of(self.shelf.compiled(self.shelf.envelope_for(body), body))
        name, version = active_workflow(self._desk, type_)
        program = self._desk.registry.library.program(self._desk.tenant, name, version)
        assert program is not None
        assert isinstance(program.decider, GraphMachine)
        return program.decider.graph
