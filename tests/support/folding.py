"""The check behind every engine test: what is stored, cached and remembered equals the fold of the events."""

from __future__ import annotations

from standfast import Engine, PayloadError
from standfast.features.deciders.verification import verified
from standfast.graph.document_checks import ENVELOPE
from standfast.kernel.history import StoredEvent, check_sequence
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address, InstanceHeader, InstanceQuery, Loaded, Snapshot
from support.reporting import assert_reported

_ALL = 10_000


def assert_folded(engine: Engine, proved: set[object] | None = None) -> None:
    """Fold every instance that the engine knows from its events, and compare whatever else claims to know its state.

    `proved` is for engines that remember nothing: what one of them has proved, another one with the same code need not prove again.
    """
    has_documents, processes = False, list[InstanceId]()
    with engine.service.store.reader(engine.request.tenant).look() as reader:
        for header in reader.instances(InstanceQuery(limit=_ALL)):
            if header.definition in engine.registry.names():
                instance = _Instance(engine, reader, header)
                if proved is None or instance.proof not in proved:
                    instance.check()
                if proved is not None:
                    proved.add(instance.proof)
                has_documents = has_documents or header.kind == ENVELOPE
                processes += [header.id] if header.kind == "process" else []
    assert_reported(engine, processes)
    if has_documents:
        found = engine.futures.invariants.check().result().items + engine.futures.invariants.workflows().result()
        told = [(each.rule, each.document or each.definition, each.told) for each in found]
        assert not told, f"rules of documents do not hold: {told}"


class _Instance:
    def __init__(self, engine: Engine, reader: TenantReader, header: InstanceHeader) -> None:
        self._engine = engine
        self._reader = reader
        self._address = Address(tenant=header.tenant, definition=header.definition, key=header.key, instance=header.id)
        self._program: Program = engine.registry.get(header.tenant, header.definition, header.definition_version)
        self.proof = (header.id, self._program.definition_version or id(self._program.decider))

    def check(self) -> None:
        """All that must hold of one instance."""
        self._check_history()
        name = self._address.definition
        if not self._engine.registry.is_decider(name) or name.startswith("$"):
            told = verified(self._reader, self._engine.registry, self._address)
            assert told.differences == [], "the rows tell another story than the events"

    def _check_history(self) -> None:
        kept = self._loaded(whole=False)
        whole = kept if kept.snapshot is None else self._loaded(whole=True)
        events, header = whole.events, whole.header
        check_sequence(events, after=0)
        assert header.version == len(events), "the row counts other events than there are"
        state = self._fold(events)
        status = self._program.status(state)
        assert (header.status, header.reason) == (status.word, status.reason), "the row shows another status"
        assert (header.ended_at is not None) == status.is_terminal
        assert not (status.is_terminal and whole.timers), "an instance that has ended has timers"
        self._check_snapshot(kept.snapshot, events)
        self._check_memory(state, whole)

    def _loaded(self, *, whole: bool) -> Loaded:
        loaded = self._reader.load(self._address, whole=whole)
        assert loaded is not None
        return loaded

    def _check_snapshot(self, snapshot: Snapshot | None, events: list[StoredEvent]) -> None:
        if snapshot is None or not self._program.takes_snapshot(snapshot.state_version, snapshot.fingerprint):
            return
        try:
            restored = self._program.restore(snapshot.data)
        except PayloadError:
            return  # Worth nothing, and nobody relies on it.
        assert self._bytes(restored) == self._bytes(self._fold(events[: snapshot.version])), "the snapshot is wrong"

    def _check_memory(self, state: object, whole: Loaded) -> None:
        remembered = self._engine.service.committer.lanes[0].cache.find(self._address)
        if remembered is None or remembered.header.version != whole.header.version:
            return
        assert self._bytes(remembered.state) == self._bytes(state), "the state in memory is wrong"
        # A timer that was buried leaves no event, so memory may hold one too many; a commit that relies on it is undone.
        # When it is due may be moved behind the back of the memory, by a pause under which clocks stand still.
        known, stored = (
            {key: each.number for key, each in timers.items()} for timers in (remembered.timers, whole.timers)
        )
        assert known.items() >= stored.items(), "the timers in memory are wrong"

    def _fold(self, events: list[StoredEvent]) -> object:
        return self._program.replay(self._program.initial(), events)

    def _bytes(self, state: object) -> object:
        try:
            return self._program.snapshot(state)
        except PayloadError:
            return state
