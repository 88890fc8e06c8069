"""Taking values out of a document and its amendments for good: out of their histories, and so out of all that is made from these.

Everything is one transaction. What is left folds to the same place, so that the invariants hold; the hash of each rewritten event before and
after stands in the history, so that what was sealed stays proven; each version keeps the hash of the content that was approved.

Putting hashes in the place of values, wherever in a history they stand.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from standfast.calls.context import CallContext, checked_key, checked_some
from standfast.errors import ConflictError, ForbiddenError, NotFoundError, PayloadError
from standfast.features.documents.invariants.checks import differences
from standfast.features.documents.invariants.evidence import Evidence
from standfast.features.documents.invariants.replay import HistoryReplay
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.features.documents.invariants.scan import evidences, findings, program_of
from standfast.graph.field_visibility import readers_of
from standfast.graph.model import RestOp
from standfast.graph.model import StateOp as StateNode
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.hash_chain import leaf_of
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.documents import StoredDocument
from standfast.kernel.rows import writing_of
from standfast.machine.machine import GraphMachine
from standfast.machine.model.events import ChildStarted, DocumentRedacted
from standfast.machine.model.json_values import fingerprint
from standfast.machine.model.queries.fields import holds_any, is_mark
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.store import LostRaceError, Rewritten, StoreParts, Transaction
from standfast.store.records.instances import InstanceChange

CONTENT: Final = {"document_created": "data", "document_changed": "changes"}
"""Where the events that write a document have its content."""
_FREE: Final = frozenset(
    {
        *("data", "changes", "input", "output", "payload", "patch", "items", "given", "decisions", "told"),
        *("why", "comment", "error", "errors", "reason", "text", "trouble", "warnings"),
    }
)
"""The parts of events that hold what people and systems have said; all others are names that the machine goes by."""
_SAID: Final = {"event_received": _FREE | {"key"}}
"""The same of events that have more of them: the key of a published event is made of what the document says."""
_LEAST: Final = 4
"""A text that is shorter is looked for as a whole, and not inside of other texts."""
_encode = msgspec.json.Encoder(order="sorted").encode


class Redactor:
    """What is put over the values of some fields. The same value gets the same hash, and nobody can find the value by trying: the secret is thrown away."""

    def __init__(self, fields: Collection[str], secret: bytes) -> None:
        self.fields = frozenset(fields)
        self._secret = secret
        self._values: dict[str, list[object]] = {name: [] for name in fields}
        self._texts: set[str] = set()

    def learn(self, content: Mapping[str, object]) -> None:
        """Know the values that a version of the document has."""
        for name in self.fields & content.keys():
            value = content[name]
            if _is_value(value) and value not in self._values[name]:
                self._values[name].append(value)
                self._texts.update(_texts(value))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hide."""
        return not any(self._values.values())

    def token(self, value: object) -> str:
        """What stands for a value."""
        return f"redacted:{hmac.new(self._secret, _encode(value), hashlib.sha256).hexdigest()}"

    def content(self, data: Mapping[str, object]) -> Data:
        """The content of a document with the values of the fields hidden; those of other fields are no matter of this."""
        return {
            name: self.token(value) if name in self.fields and _is_value(value) else value
            for name, value in data.items()
        }

    def anywhere(self, value: object) -> object:
        """What somebody said, with the values hidden: by the name of the field, and texts wherever they stand."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self._named(name, each) for name, each in value.items()}
            case list():
                return [self.anywhere(each) for each in value]
            case _:
                return value

    def _named(self, name: str, value: object) -> object:
        """What stands under a name: the value of a field, or its values before and after a change."""
        if self._is_known(name, value):
            return self.token(value)
        if isinstance(value, list) and name.rpartition(".")[2] in self.fields:
            return [self._named(name, each) for each in value]
        return self.anywhere(value)

    def text(self, said: str) -> str:
        """A text with the values hidden."""
        if said in self._texts:
            return self.token(said)
        for each in sorted(self._texts, key=len, reverse=True):  # A longer one may hold a shorter one.
            if len(each) >= _LEAST:
                said = said.replace(each, self.token(each))
        return said

    def event(self, kind: str, data: Data) -> Data:
        """What an event says, with the values hidden."""
        content, said = CONTENT.get(kind), _SAID.get(kind, _FREE)
        return {
            name: self.content(value)
            if name == content and isinstance(value, dict)
            else self.anywhere(value)
            if name in said
            else value
            for name, value in data.items()
        }

    def _is_known(self, name: str, value: object) -> bool:
        field = name.rpartition(".")[2]
        return field in self.fields and value in self._values[field]


def _is_value(value: object) -> bool:
    """Whether there is something to hide: no value is none, and a hash is hidden already."""
    return value is not None and not is_mark(value)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            pass


Data = dict[str, object]

_CALLED: Final = "child_started"
_MOST_TOLD: Final = 5
"""Dead letters that a refusal names."""
REDACT = "documents:redact"
"""The capability of whoever may take values out of documents for good."""


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken out of a document."""

    type: str
    id: str
    fields: list[str]
    """Those that were asked for, or all that are sensitive."""
    events: int
    """How many events were rewritten; 0 if there was nothing to take out."""
    related: list[str]
    """Documents that this one amends, or that took its place: the values were taken out of them too."""
    runs: list[str] = []
    """Runs that calls of these started, and those that they started in turn: the values were taken out of them too."""


class _Plan(msgspec.Struct, frozen=True):
    """What is written."""

    evidence: Evidence
    veil: Redactor
    events: Sequence[Rewritten]
    redacted: StoredEvent
    walk: HistoryReplay
    """The history as it will be."""


def check_redactor(desk: CallContext) -> None:
    """ForbiddenError unless whoever calls may redact."""
    _check_redactor(desk.looked_up())


def _check_redactor(desk: CallContext) -> None:
    actor = desk.request.actor
    if not actor.may(REDACT):
        told = f"{actor.id!r} may not take values out of documents: that takes the capability {REDACT!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)


def checked_fields(given: Sequence[str] | None) -> list[str]:
    """The names of fields that a caller gives; none if they are left out."""
    given = checked_some(given, "fields", then="nothing would be redacted")
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise PayloadError(f"fields are a list of names, not {given!r:.200}")
    return [checked_key(each, "field") for each in given]


def redacted(desk: CallContext, row: StoredDocument, asked: Sequence[str], reason: str) -> Redaction:
    """Put hashes in the place of all values that fields of a document have or had, and of those that it amends or that took its place.

    All of them are one transaction: an amendment goes on with the values of the one before.
    """
    chain = _chain(desk, row)
    known = {each.header.id: (each, list(_found(desk, each, reader))) for each, reader in _evidences(desk, chain)}
    if row.instance not in known:
        raise NotFoundError("document", f"{row.type}/{row.id}")
    runs = _started(desk, [evidence for evidence, _ in known.values()])
    for evidence, found in known.values():
        if found:
            told = "; ".join(each.told for each in found[:3])
            raise ConflictError(
                f"{evidence.header.key!r} breaks a rule, so that it is left as it is: {told}; repair it first"
            )
    own, _ = known[row.instance]
    fields = _fields(program_of(desk, own.header), own, asked)
    veil = Redactor(fields, secrets.token_bytes(32))
    contents = {each.header.id: _contents(program_of(desk, each.header), each.events) for each, _ in known.values()}
    for content in (each for some in contents.values() for each in some):
        veil.learn(content)
    plans = [
        plan
        for evidence in (*(each for each, _ in known.values()), *runs)
        if (plan := _planned(desk, evidence, veil, contents.get(evidence.header.id, []), reason=reason)) is not None
    ]
    if plans:
        desk.operate(lambda parts: _carry_out(desk, parts, plans), check=_check_redactor)
    return Redaction(
        type=row.type,
        id=row.id,
        fields=fields,
        events=sum(len(each.events) for each in plans),
        related=[each.id for each in chain if each.id != row.id],
        runs=[str(each.header.id) for each in runs],
    )


def _chain(desk: CallContext, row: StoredDocument) -> list[StoredDocument]:
    """A document with those that it amends, and those that took its place, in the order in which they were."""
    with desk.reader.look() as reader:
        partition = next((each.partition for each in reader.headers([row.instance])), "")
        before, after, seen = [row], [row], {row.id}
        while (name := before[0].amended_from) and name not in seen:
            seen.add(name)
            found = reader.document(row.type, name, partition)
            if (
                found is not None and found.superseded_by == before[0].id
            ):  # Or it is another one under an id that was free.
                before = [found, *before]
        while (name := after[-1].superseded_by) and name not in seen:
            seen.add(name)
            found = reader.document(row.type, name, partition)
            if found is not None and found.amended_from == after[-1].id:
                after = [*after, found]
    return [*before, *after[1:]]


def _started(desk: CallContext, known: Sequence[Evidence]) -> list[Evidence]:
    """What is stored of the runs that calls started, and of those that they started in turn; those that are gone are left out."""
    found: list[Evidence] = []
    while names := [name for each in known for name in _children(program_of(desk, each.header), each.events)]:
        known = [each for each, _ in evidences(desk, names)]
        found += known
    return found


def _children(program: Program, events: Sequence[StoredEvent]) -> Iterator[InstanceId]:
    for event in events:
        if event.type == _CALLED:
            said = program.decode(event)
            assert isinstance(said, ChildStarted)
            yield InstanceId(UUID(said.child))


def _evidences(desk: CallContext, chain: Sequence[StoredDocument]) -> Iterator[tuple[Evidence, TenantReader]]:
    return evidences(desk, [each.instance for each in chain])


def _found(desk: CallContext, evidence: Evidence, reader: TenantReader) -> Iterator[InvariantBreach]:
    return findings(desk, evidence, reader, set())


def _fields(program: Program, evidence: Evidence, asked: Sequence[str]) -> list[str]:
    """The fields that are meant; PayloadError if one was never there."""
    assert isinstance(program.decider, GraphMachine)
    spec = program.decider.graph.document
    known = {} if spec is None else spec.fields
    if not asked:
        # What is sensitive inside of a list or an object goes with the whole field.
        meant = (name for name, field in known.items() if holds_any(field, lambda each: each.sensitive))
        return sorted(readers_of(known, meant))
    held = {name for content in _contents(program, evidence.events) for name in content}
    unknown = sorted(set(asked) - known.keys() - held)
    if unknown:
        raise PayloadError(f"the document has no field {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    return sorted(readers_of(known, asked))


def _planned(
    desk: CallContext, evidence: Evidence, veil: Redactor, contents: Sequence[Data], *, reason: str
) -> _Plan | None:
    """What to write of one document; None if nothing of it says a value."""
    program = program_of(desk, evidence.header)
    if veil.is_empty:
        return None
    _check_rest(desk, evidence, program)
    events = _veiled(desk, evidence, veil, contents)
    if not events:
        return None
    after = {each.sequence: each for each in events}
    history = [
        msgspec.structs.replace(each, data=after[each.sequence].data, comment=after[each.sequence].comment)
        if each.sequence in after
        else each
        for each in evidence.events
    ]
    hashes = {
        str(old.sequence): [leaf_of(old), leaf_of(new)]
        for old, new in zip(evidence.events, history, strict=True)
        if old is not new
    }
    event = _told(desk, evidence, program, fields=sorted(veil.fields), hashes=hashes, reason=reason)
    walk = HistoryReplay(program, [*history, event])
    if walk.found or not walk.is_whole:
        told = "; ".join(each.told for each in walk.found[:3])
        raise ConflictError(f"what would be left does not hold together, so that nothing is redacted: {told}")
    return _Plan(evidence, veil, events, event, walk)


def _check_rest(desk: CallContext, evidence: Evidence, program: Program) -> None:
    """ConflictError while something is under way: people decide on what they see, and work, messages and dead letters have copies of their own."""
    assert isinstance(program.decider, GraphMachine)
    header, state = evidence.header, HistoryReplay(program, evidence.events).state
    routes = program.decider.routes_of(state)
    what = f"the document {header.key!r}" if state.document is not None else f"{header.definition!r}, which it called,"
    letters = desk.reader.dead_letters(instance=header.id, limit=_MOST_TOLD)
    if letters:
        names = ", ".join(f"dead letter {each.id}" for each in letters)
        raise ConflictError(f"{what} has values in {names}; requeue or discard these, then redact it")
    busy = [step.node for step in state.open.values() if not isinstance(routes.node(step.node).op, StateNode | RestOp)]
    if busy or evidence.effects or desk.reader.messages(header.id, limit=1):
        told = ", ".join(busy) or "work that is not done"
        raise ConflictError(f"{what} is under way ({told}); redact it when it rests, or withdraw or discard it first")
    if state.document is None and not state.is_terminal:
        raise ConflictError(f"{what} is under way; redact it when that has ended, or cancel it first")


def _contents(program: Program, events: Sequence[StoredEvent]) -> list[Data]:
    """The content after each event that wrote some."""
    content: Data = {}
    found = []
    for event in events:
        part = CONTENT.get(event.type)
        if part is not None:
            laid = {**content, **getattr(program.decode(event), part)}
            content = {name: value for name, value in laid.items() if value is not None}
            found.append(content)
    return found


def _veiled(desk: CallContext, evidence: Evidence, veil: Redactor, contents: Sequence[Data]) -> list[Rewritten]:
    """The events that say something else with the values hidden."""
    codec, written = desk.registry.codec, iter(contents)
    found = []
    for event in evidence.events:
        data = codec.decode(event.data, dict[str, object])
        new = data if event.is_system else veil.event(event.type, data)
        if event.type in CONTENT:
            content = next(written)
            if veil.content(content) != content:
                new = {**new, "content_hash": data.get("content_hash") or fingerprint(content)}
        comment = veil.text(event.comment)
        if new != data or comment != event.comment:
            found.append(Rewritten(event.sequence, codec.encode(new), comment))
    return found


def _told(
    desk: CallContext,
    evidence: Evidence,
    program: Program,
    *,
    fields: list[str],
    hashes: dict[str, list[str]],
    reason: str,
) -> StoredEvent:
    now, header, actor = desk.service.shared.clock.now(), evidence.header, desk.request.actor
    said = DocumentRedacted(fields=fields, events=hashes, by=actor.id, on_behalf_of=actor.on_behalf_of, reason=reason)
    encoded = program.events.encode(said)
    return StoredEvent(
        instance=header.id,
        sequence=header.version + 1,
        type=encoded.type,
        version=encoded.version,
        data=encoded.data,
        at=now,
        actor=actor.id,
        comment=reason,
        cause=str(desk.service.shared.chance.new_id(now)),
        tenant=header.tenant,
        on_behalf_of=actor.on_behalf_of,
        trace=desk.request.trace,
    )


def _carry_out(desk: CallContext, parts: StoreParts, plans: Sequence[_Plan]) -> None:
    """Rewrite all documents in one transaction, in one order for all who do so."""
    ordered = sorted(plans, key=lambda plan: plan.evidence.header.id)
    try:
        with parts.writer().unit() as unit:
            unit.load(
                [desk.address(instance=each.evidence.header.id) for each in ordered]
            )  # Locked before anything else is.
            for each in ordered:
                _rewrite(unit, each)
    except LostRaceError as error:
        names = ", ".join(repr(each.evidence.header.key) for each in ordered)
        raise ConflictError(f"{names} went on while it was looked at; try again") from error


def _rewrite(unit: Transaction, plan: _Plan) -> None:
    header, event = plan.evidence.header, plan.redacted
    new = msgspec.structs.replace(header, version=event.sequence, commits=header.commits + 1, updated_at=event.at)
    change = InstanceChange(header=new, expected=header.version, events=[event])
    kinds = list({each.kind: None for each in differences(plan.evidence, plan.walk)})
    told = [
        each._replace(records=[r for r in each.records if writing_of(type(r)).kind in kinds])
        for each in plan.walk.commits
    ]
    unit.redact(header.id, plan.events, plan.veil.text)
    unit.rewrite(change, kinds, told, event.at)
