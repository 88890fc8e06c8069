"""How contracts and bodies become true: compiled, tried out, and then written at once with what is pinned to documents.

What takes long is done before the transaction, on what was seen; the transaction looks whether that still stands, and otherwise nothing was
done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from standfast.calls.context import CallContext
from standfast.errors import ConfigurationError, DefinitionError, Diagnostic, ForbiddenError, RejectedError
from standfast.features.documents.compiler.artifact import Effective, effective_data
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.loading import content_hash
from standfast.features.documents.publishing.catalog import WrittenBody, content_of
from standfast.features.documents.publishing.rejections import BlueprintRefusal, refused
from standfast.features.documents.publishing.views import drafters_of
from standfast.graph.compiler import graph_bytes, read_graph
from standfast.graph.model import IR_VERSION, CallOp, Graph
from standfast.kernel.codec.canonical import canonical_bytes
from standfast.kernel.row_kinds.changes import Change
from standfast.machine.model.queries.authorization import start_refusal
from standfast.store.ports.documents import BlueprintChange, StoredBlueprint
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import SHARED_TENANT, StoredDefinition

T = TypeVar("T")

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_TRIES: Final = 5
"""How often a number is taken anew that others were faster to take."""


class _TakenError(Exception):
    """Somebody else has the number by now."""


class Compiled(NamedTuple):
    """What is about to be published."""

    effective: Effective
    envelope: StoredBlueprint
    body: StoredBlueprint | None


class Publisher:
    """Writes the blueprints of one owner: a tenant, or all of them."""

    def __init__(self, desk: CallContext, owner: str) -> None:
        self._desk = desk
        self._owner = owner
        self._now = desk.service.shared.clock.now()
        self._actor = desk.request.actor
        self._added: Graph | None = None
        """The graph that the transaction has published, if it has."""

    # -- drafts

    def begin(self, written: WrittenBody, *, replaces: int, comment: str) -> StoredBlueprint:
        """A new draft."""
        row = self.drafted(written, replaces=replaces, comment=comment)
        self._change(row.type, lambda unit: unit.add(row), self._told(row, "begin", reason=comment))
        return row

    def drafted(self, written: WrittenBody, *, replaces: int, comment: str) -> StoredBlueprint:
        """The row of a draft that is not written yet."""
        actor, now, body = self._actor.id, self._now, written.body
        return StoredBlueprint(
            id=self._new_id(),
            tenant=self._owner,
            type=body.base.entity_type,
            kind="body",
            version=0,
            status="draft",
            is_default=False,
            name=body.name,
            envelope_version=body.base.envelope_version,
            content=written.content,
            hash=written.hash,
            replaces=replaces,
            drafted_by=self._drafters([]),
            comment=comment,
            created_by=actor,
            created_at=now,
            updated_by=actor,
            updated_at=now,
        )

    def save(self, row: StoredBlueprint, written: WrittenBody, *, comment: str) -> StoredBlueprint:
        """The next revision of a draft."""
        saved = replace(
            row,
            name=written.body.name,
            envelope_version=written.body.base.envelope_version,
            content=written.content,
            hash=written.hash,
            revision=row.revision + 1,
            drafted_by=self._drafters(drafters_of(row)),
            comment=comment,
            updated_by=self._actor.id,
            updated_at=self._now,
        )
        told = self._told(saved, "save", before={"hash": row.hash, "revision": row.revision}, reason=comment)
        if not self._change(row.type, lambda unit: unit.save(saved), told):
            raise draft_changed(row)
        return saved

    def discard(self, row: StoredBlueprint) -> None:
        """Forget a draft."""
        told = self._told(row, "discard", before={"revision": row.revision}, after={"revision": None})
        if not self._change(row.type, lambda unit: unit.discard(row.id), told):
            raise draft_changed(row)

    def check_reviewed(self, row: StoredBlueprint, revision: int | None) -> None:
        """Raise what stands against publishing a draft as somebody has reviewed it: where the organisation wants two people, that is another one, who names the revision."""
        if revision is not None and revision != row.revision:
            raise draft_changed(replace(row, revision=revision))
        if not self._wants_two():
            return
        if not {self._actor.id, self._actor.on_behalf_of}.isdisjoint(drafters_of(row)):
            told = "drafted it, and the organisation wants two people; have somebody else publish it"
            raise ForbiddenError(reason=BlueprintRefusal.SECOND_PERSON_REQUIRED, message=f"{self._actor.id!r} {told}")
        if revision is None:
            told = "the organisation wants two people; read the draft, and give the `revision` that you have reviewed"
            raise refused(BlueprintRefusal.REVISION_REQUIRED, told)

    def check_alone(self, row: StoredBlueprint) -> None:
        """ForbiddenError for whoever would put an older version in force alone, if the organisation wants two people."""
        if self._wants_two():
            told = f"the organisation wants two people, and nobody rolls back alone; save version {row.version} as a draft, and have somebody else publish it"
            raise ForbiddenError(reason=BlueprintRefusal.SECOND_PERSON_REQUIRED, message=told)

    def _wants_two(self) -> bool:
        rule = self._desk.service.survey(lambda parts: parts.blueprints().rule(self._owner))
        return rule is not None and rule.two_person

    # -- bodies

    def publish_body(self, compiled: Compiled, *, replaces: int, comment: str, is_new: bool = False) -> StoredBlueprint:
        """Make a draft the body in force, and what was compiled of it the workflow of new documents. A new one is written with it, so that none is left behind."""
        draft = compiled.body
        assert draft is not None

        def write(unit: BlueprintChange, number: int, graph: Graph) -> StoredBlueprint:
            bodies = unit.listed("body")
            former = next((each for each in bodies if each.status == "published"), None)
            if (0 if former is None else former.version) != replaces:
                raise _superseded(former, replaces)
            self._archive(unit, "another version was published")
            published = replace(
                draft,
                version=max((each.version for each in bodies), default=0) + 1,
                status="published",
                comment=comment or draft.comment,
                published_by=self._actor.id,
                published_at=self._now,
            )
            if is_new:
                unit.add(draft)
            if not unit.publish(published):
                raise draft_changed(draft)
            self._add_effective(unit, compiled, number, graph)
            return published

        def told(made: StoredBlueprint) -> Change:
            before, after = {"version": replaces}, {"version": made.version, "hash": made.hash}
            what = "rollback" if is_new else "publish"
            return self._told(made, what, name=made.type, before=before, after=after, reason=comment)

        return self._publish(compiled.effective, write, told)

    def recompile(self, compiled: Compiled, former: str) -> bool:
        """Put what was compiled anew in the place of what is in force; the body stays. Whether that was still in force, and nothing else was published or archived."""

        def write(unit: BlueprintChange, number: int, graph: Graph) -> bool:
            if former not in {each.id for each in unit.listed("effective") if each.status == "published"}:
                return False
            self._archive_effective(unit, "it was compiled again")
            self._add_effective(unit, compiled, number, graph)
            return True

        def told(is_done: bool) -> Change | None:  # noqa: FBT001 - what the work says
            made = self._added
            if not is_done or made is None:
                return None
            return self._desk.changed(
                "body", made.name, "recompile", after={"workflow": made.version}, tenant=self._owner
            )

        return self._publish(compiled.effective, write, told)

    def archive(self, type_: str, why: str) -> StoredBlueprint | None:
        """Archive the body in force with what was compiled of it; None if there is none."""

        def told(former: StoredBlueprint | None) -> Change | None:
            if former is None:
                return None
            before, after = {"status": former.status}, {"status": "archived", "version": former.version}
            return self._told(former, "archive", name=type_, before=before, after=after, reason=why)

        return self._change(type_, lambda unit: self._archive(unit, why), told)

    def _archive(self, unit: BlueprintChange, why: str) -> StoredBlueprint | None:
        former = next((each for each in unit.listed("body") if each.status == "published"), None)
        if former is not None:
            unit.archive(former.id, by=self._actor.id, at=self._now, why=why)
        self._archive_effective(unit, why)
        return former

    def _archive_effective(self, unit: BlueprintChange, why: str) -> None:
        for each in unit.listed("effective"):
            if each.status == "published":
                unit.archive(each.id, by=self._actor.id, at=self._now, why=why)
                unit.retire_workflow(each.workflow or "")

    # -- contracts

    def publish_contract(self, envelope: Envelope, effective: Effective, *, comment: str) -> StoredBlueprint:
        """Store a contract with its envelope; unless the owner has a body of its own, new documents begin with the bare one."""
        contract = envelope.contract
        row = self._contract_row(envelope, comment)

        def write(unit: BlueprintChange, number: int, graph: Graph) -> StoredBlueprint:
            known = unit.listed("envelope")
            same = next((each for each in known if (each.version, each.hash) == (row.version, row.hash)), None)
            if same is not None:  # Another process was faster with the very same one.
                return same
            if known and known[-1].version >= contract.version:
                raise refused(BlueprintRefusal.CONTRACT_VERSION_REUSED, reused(contract, known[-1].version))
            unit.add(row)
            if not any(each.status != "draft" for each in unit.listed("body")):
                self._archive_effective(unit, "another version of the contract was published")
                self._add_effective(unit, Compiled(effective, row, None), number, graph)
            return row

        def told(made: StoredBlueprint) -> Change | None:
            if made is not row:
                return None
            after = {"version": made.version, "hash": made.hash}
            return self._desk.changed("contract", made.type, "publish", after=after, reason=comment, tenant=self._owner)

        return self._publish(effective, write, told)

    def _contract_row(self, envelope: Envelope, comment: str) -> StoredBlueprint:
        contract, actor, now = envelope.contract, self._actor.id, self._now
        plain = msgspec.to_builtins(envelope)
        return StoredBlueprint(
            id=self._new_id(),
            tenant=self._owner,
            type=contract.entity_type,
            kind="envelope",
            version=contract.version,
            status="published",
            is_default=True,
            name=contract.title,
            envelope_version=envelope.version,
            content=content_of(contract),
            hash=content_hash(contract),
            skeleton=canonical_bytes({name: plain[name] for name in ("nodes", "edges", "slots", "hash")}),
            drafted_by=self._drafters([]),
            comment=comment,
            created_by=actor,
            created_at=now,
            updated_by=actor,
            updated_at=now,
            published_by=actor,
            published_at=now,
        )

    # -- what both have in common

    def _publish(
        self,
        effective: Effective,
        write: Callable[[BlueprintChange, int, Graph], T],
        told: Callable[[T], Change | None],
    ) -> T:
        """Compile under the next number, and write; once more if somebody else took it meanwhile."""
        type_ = effective.entity_type
        for _ in range(_TRIES):
            number = self._next_number(type_)
            graph = read_graph(graph_bytes(graph_of(effective, version=self._workflow(number))))
            self._desk.registry.check_free(graph)
            self._check_calls(graph)

            def attempt(unit: BlueprintChange, number: int = number, graph: Graph = graph) -> T:
                if _next(unit.listed("effective")) != number:
                    raise _TakenError
                return write(unit, number, graph)

            try:
                made = self._change(type_, attempt, told)
            except _TakenError:
                continue
            if self._added is not None:
                self._desk.registry.library.note_published(self._owner, self._added)
            return made
        raise refused(
            BlueprintRefusal.BODY_SUPERSEDED, f"others publish workflows of {type_!r} all the time; try again"
        )

    def _check_calls(self, graph: Graph) -> None:
        """The workflows that steps start are there, manage no documents, and are such as whoever publishes may start."""
        library = self._desk.registry.library
        library.check_calls(self._owner, graph)
        for node in graph.nodes.values():
            if not isinstance(node.op, CallOp):
                continue
            called = library.graph(self._owner, node.op.definition, node.op.version)
            if called.document is not None:
                told = f"{node.id!r} starts {called.name!r}, whose documents are created by an action; call another workflow"
                raise DefinitionError(graph.name, [Diagnostic("unknown_workflow", told, node.id)])
            barred = start_refusal(called, self._actor)
            if barred is not None:
                raise ForbiddenError(reason=barred.code, message=f"{barred.message}, nor have steps start it")

    def _add_effective(self, unit: BlueprintChange, compiled: Compiled, number: int, graph: Graph) -> None:
        effective, actor, now = compiled.effective, self._actor.id, self._now
        row = StoredBlueprint(
            id=self._new_id(),
            tenant=self._owner,
            type=effective.entity_type,
            kind="effective",
            version=number,
            status="published",
            is_default=False,
            name=effective.contract.title,
            envelope_version=effective.envelope_version,
            content=canonical_bytes(effective_data(effective)),
            hash=effective.hash,
            header=msgspec.json.encode(effective.header),
            compiler=effective.compiler_version,
            graph_hash=effective.graph_hash,
            workflow=graph.version,
            envelope=compiled.envelope.id,
            body=None if compiled.body is None else compiled.body.id,
            created_by=actor,
            created_at=now,
            updated_by=actor,
            updated_at=now,
            published_by=actor,
            published_at=now,
        )
        unit.add(row)
        if not unit.publish_workflow(self._definition(graph, row), now):
            told = f"the version {graph.version!r} of {graph.name!r} was registered by code"
            raise ConfigurationError(f"{told}; give that one another version")
        self._added = graph

    def _definition(self, graph: Graph, row: StoredBlueprint) -> StoredDefinition:
        return StoredDefinition(
            tenant=self._owner,
            name=graph.name,
            version=graph.version,
            kind=graph.kind,
            source=b"",
            compiled=graph_bytes(graph),
            hash=graph.hash,
            compiler=str(IR_VERSION),
            description=row.name,
            published_by=self._actor.id,
        )

    def _workflow(self, number: int) -> str:
        """What a compiled workflow is called; one of a tenant and a shared one never have the same name."""
        return f"{number}-std" if self._owner == SHARED_TENANT else f"{number}-org"

    def _next_number(self, type_: str) -> int:
        found = self._desk.service.survey(
            lambda parts: parts.blueprints().listed(self._owner, kind="effective", type_=type_)
        )
        return _next([each for each in found if each.tenant == self._owner])

    def _change(
        self, type_: str, work: Callable[[BlueprintChange], T], told: Change | Callable[[T], Change | None]
    ) -> T:
        def change(parts: StoreParts) -> T:
            with parts.blueprints().changing(self._owner, type_) as unit:
                return work(unit)

        return self._desk.record(told, change)

    def _told(
        self,
        row: StoredBlueprint,
        action: str,
        *,
        name: str = "",
        before: Mapping[str, object] = _NOTHING,
        after: Mapping[str, object] | None = None,
        reason: str = "",
    ) -> Change:
        """What becomes of a body, or of a draft of one. What the request says is in the words of whoever asks; a comment may be the engine's."""
        reason = self._desk.request.reason or reason
        now = {"hash": row.hash, "revision": row.revision} if after is None else after
        return self._desk.changed(
            "body", name or f"{row.type}/{row.id}", action, before=before, after=now, reason=reason, tenant=self._owner
        )

    def _drafters(self, known: Sequence[str]) -> str:
        own = [each for each in (self._actor.id, self._actor.on_behalf_of) if each]
        return msgspec.json.encode(list(dict.fromkeys([*known, *own]))).decode()

    def _new_id(self) -> str:
        return str(self._desk.service.shared.chance.new_id(self._now))


def draft_changed(row: StoredBlueprint) -> RejectedError:
    """What is said to those who come too late to a draft."""
    told = f"the draft {row.id} of {row.type!r} was saved, published or discarded since you read it as revision {row.revision}"
    return refused(BlueprintRefusal.DRAFT_CHANGED, f"{told}; read it again, and decide anew")


def reused(contract: Contract, newest: int) -> str:
    """What is said of a contract whose version is taken."""
    told = f"version {newest} of the contract of {contract.entity_type!r} is published, and this one says {contract.version}"
    return f"{told}; raise `version` above it"


def _superseded(former: StoredBlueprint | None, replaces: int) -> RejectedError:
    if former is None:
        told = f"the draft was made to replace version {replaces}, and none is in force any more"
    else:
        since = f"{former.published_by!r} has published version {former.version} meanwhile"
        told = f"{since}, and the draft was made to replace {f'version {replaces}' if replaces else 'none'}"
    number = 0 if former is None else former.version
    hint = f"compare them with `bodies.diff`, and publish it with replaces={number} if it is to take its place"
    return refused(BlueprintRefusal.BODY_SUPERSEDED, f"{told}; {hint}")


def _next(effectives: Sequence[StoredBlueprint]) -> int:
    return max((each.version for each in effectives), default=0) + 1
