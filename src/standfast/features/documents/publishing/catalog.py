"""The blueprints of one tenant, as they are read: which contract a body is written for, what is wrong with it, what it compiles to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from standfast.calls.context import CallContext, checked_key
from standfast.errors import DefinitionError, Diagnostic, NotFoundError, PayloadError
from standfast.features.documents.body.checks import read_body, read_partly
from standfast.features.documents.body.diagnostics import BodyDiagnostic
from standfast.features.documents.body.format import Body, plain_yaml
from standfast.features.documents.compiler.artifact import HASH_MISMATCH, Effective, read_effective
from standfast.features.documents.compiler.compatibility import is_older
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.contract.envelope import Envelope, generate_envelope, outdated_warning
from standfast.features.documents.contract.format import Contract, Field, ListField, ObjectField, RefField
from standfast.features.documents.contract.loading import plain_hash
from standfast.features.documents.publishing.service_accounts import account_problems
from standfast.features.documents.publishing.views import BodyCheck, BodyVersion, body_version
from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.codec.defaults import with_default_texts
from standfast.kernel.codec.type_cache import settled
from standfast.store.ports.documents import Blueprints, StoredBlueprint

T = TypeVar("T")
B = TypeVar("B", Contract, Body)

MOST_VERSIONS = 2**31 - 1


class Catalog:
    """Where the contracts and bodies of a tenant are found, the shared ones included. Contents are read once."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        self.tenant = desk.tenant

    def ask(self, question: Callable[[Blueprints], T]) -> T:
        """Ask the database."""
        return self._desk.service.survey(lambda parts: question(parts.blueprints()))

    # -- contracts

    def contracts(self, type_: str, owner: str = "") -> list[StoredBlueprint]:
        """The versions of a contract, oldest first: those of an owner, or the tenant's own, or else the shared ones."""
        found = self.ask(lambda each: each.listed(owner or self.tenant, kind="envelope", type_=type_))
        if owner:
            return [each for each in found if each.tenant == owner]
        return [each for each in found if each.tenant == self.tenant] or found

    def newest_contract(self, type_: str) -> StoredBlueprint:
        """The newest version of a contract, with what it says."""
        return self.whole(self._last(type_, self.contracts(type_)))

    def contract_row(self, type_: str, version: int) -> StoredBlueprint:
        """One version of a contract, the newest if it is 0, with what it says."""
        rows = self.contracts(type_)
        if not version:
            return self.whole(self._last(type_, rows))
        found = next((each for each in rows if each.version == version), None)
        if found is None:
            raise NotFoundError("contract", f"{type_} version {version}", hint="`contracts.versions` lists them")
        return self.whole(found)

    def contract_for(self, body: Body) -> StoredBlueprint:
        """The newest version of the contract with the envelope that a body is written for; DefinitionError if there is none."""
        type_, version = body.base.entity_type, body.base.envelope_version
        rows = self.contracts(type_)
        fitting = [each for each in rows if each.envelope_version == version]
        if not fitting:
            known = ", ".join(sorted({str(each.envelope_version) for each in rows}))
            hint = (
                f"there are: {known}" if known else f"no contract {type_!r} is published; `contracts.publish` does that"
            )
            told = f"there is no version {version} of the envelope of {type_!r}; {hint}"
            raise DefinitionError(f"the body of {type_}", [BodyDiagnostic("base", told, "base")])
        return self.whole(fitting[-1])

    def related(self, contract: Contract) -> dict[str, Contract]:
        """The contracts of the types that documents refer to, as far as they are published."""
        wanted = sorted(set(_references(contract.fields.values())) - {contract.entity_type})
        found = {name: rows[-1] for name in wanted if (rows := self.contracts(name))}
        return {name: contract_of(self.whole(row)) for name, row in found.items()}

    def _last(self, type_: str, rows: list[StoredBlueprint]) -> StoredBlueprint:
        if not rows:
            raise NotFoundError("contract", type_, hint="publish it with `contracts.publish`")
        return rows[-1]

    def whole(self, row: StoredBlueprint) -> StoredBlueprint:
        """One from a list, with what it says."""
        found = self.ask(lambda each: each.get(self.tenant, row.id))
        assert found is not None, "what is published never goes"
        return found

    # -- bodies

    def bodies(self, type_: str = "") -> list[StoredBlueprint]:
        """All bodies and drafts of a type, or of all types."""
        return self.ask(lambda each: each.listed(self.tenant, kind="body", type_=type_))

    def effectives(self, type_: str = "") -> list[StoredBlueprint]:
        """All that the tenant has had compiled."""
        found = self.ask(lambda each: each.listed(self.tenant, kind="effective", type_=type_))
        return [each for each in found if each.tenant == self.tenant]

    def in_force(self, type_: str) -> int:
        """The version of the body that is in force; 0 if none is."""
        return max((each.version for each in self.bodies(type_) if each.status == "published"), default=0)

    def body_row(self, type_: str, version: int) -> StoredBlueprint:
        """One version of a body, that in force if it is 0, with what it says."""
        name = checked_key(type_, "type")
        known = [each for each in self.bodies(name) if each.status != "draft"]
        wanted = [each for each in known if each.version == version or (not version and each.status == "published")]
        if not wanted:
            told = f"{name} version {version}" if version else f"{name} in force"
            raise NotFoundError("body", told, hint="`bodies.versions` lists those that were published")
        return self.whole(wanted[-1])

    def draft_row(self, identity: object) -> StoredBlueprint:
        """A draft of the tenant's, or what it was published as, with what it says."""
        key = checked_key(identity, "id of a draft")
        row = self.ask(lambda each: each.get(self.tenant, key))
        if row is None or row.kind != "body" or row.tenant != self.tenant:
            raise NotFoundError("draft", key, hint="`bodies.drafts` lists those that there are")
        return row

    def version_of(self, row: StoredBlueprint, *, with_body: bool = True) -> BodyVersion:
        """A published body as callers see it."""
        found = [each for each in self.effectives(row.type) if each.body == row.id]
        assert found, "what is published was compiled"
        by = {each.id: each.version for each in self.ask(lambda s: s.listed(self.tenant, kind="envelope"))}
        effective = found[-1]
        return body_version(row, effective, by[effective.envelope or ""], body_of(row) if with_body else None)

    def effective_of(self, row: StoredBlueprint) -> Effective:
        """What was compiled of a body, last."""
        found = [each for each in self.effectives(row.type) if each.body == row.id]
        return read_effective(self.whole(found[-1]).content)

    # -- what a body comes to

    def envelope_for(self, body: Body) -> Envelope:
        """The envelope that a body is written for."""
        return generate_envelope(contract_of(self.contract_for(body)))

    def check(self, body: Body, text: str | bytes | None = None) -> BodyCheck:
        """Everything that is wrong with a body, and what is odd about it; with places in the text, if it was given as one."""
        type_ = body.base.entity_type
        try:
            envelope = self.envelope_for(body)
        except DefinitionError as error:
            found = [BodyDiagnostic(each.code, each.message, each.position) for each in error.diagnostics]
            return BodyCheck(type=type_, problems=found, warnings=[])
        given, related = body if text is None else text, self.related(envelope.contract)
        problems = check_body(envelope, given, related=related, chains=self.chains())
        unknown, odd = account_problems(self._desk, body)
        return BodyCheck(type=type_, problems=[*problems, *unknown], warnings=[*self.warnings(envelope), *odd])

    def warnings(self, envelope: Envelope) -> list[Diagnostic]:
        """What is odd about a body on this envelope."""
        newest = generate_envelope(contract_of(self.newest_contract(envelope.entity_type)))
        odd = outdated_warning(envelope, newest)
        return [] if odd is None else [odd]

    def chains(self) -> set[str]:
        """The names of the tenant's approval chains."""
        found = self._desk.service.survey(lambda parts: parts.chains().listed(self.tenant, name=""))
        return {each.name for each in found}

    def compiled(self, envelope: Envelope, body: Body | None, *, chains: set[str] | None = None) -> Effective:
        """The workflow of a body; DefinitionError with everything that is wrong with it. Chains are looked for where they are given."""
        return compile_effective(envelope, body, related=self.related(envelope.contract), chains=chains)


class WrittenBody(NamedTuple):
    """A body as its author wrote it."""

    body: Body
    """What it says, as far as it can be read."""
    content: bytes
    """What a draft keeps of it."""
    hash: str
    source: str = ""
    """The same as YAML, if its form has mistakes: problems name places in it. Empty if it has none."""


def malformed(body: Body, plain: dict[str, object]) -> WrittenBody:
    """What a file says whose form has mistakes; PayloadError if it holds what cannot be kept."""
    told = {name: value for name, value in plain.items() if name != "hash"}
    return WrittenBody(body, msgspec.json.encode(told), canonical_hash(told), source=plain_yaml(told))


def draft_of(row: StoredBlueprint) -> WrittenBody:
    """What a draft says, whatever is wrong with its form; DefinitionError if something changed it."""
    kept = _malformed(row)
    if kept is not None:
        return kept
    body = body_of(row)
    return WrittenBody(body, row.content, row.hash)


def _malformed(row: StoredBlueprint) -> WrittenBody | None:
    """A draft whose form has mistakes: it is kept as it was written."""
    if row.kind != "body" or row.status != "draft":
        return None
    try:
        plain = msgspec.json.decode(row.content)
        read = read_partly(row.content)
        kept = None if read.body is None or not read.mistakes else malformed(read.body, plain)
    except (msgspec.MsgspecError, UnicodeDecodeError, PayloadError):
        return None
    return kept if kept is not None and kept.hash == row.hash else None


class StaleContract(NamedTuple):
    """A contract whose bare workflow an older compiler has compiled."""

    contract: StoredBlueprint
    effective: str
    """The id of what was compiled."""


def is_stale(desk: CallContext, row: StoredBlueprint) -> bool:
    """Whether a compiled workflow is to be compiled again. What is out of use would be in use again under another number."""
    if row.status != "published" or not is_older(row.compiler or ""):
        return False
    known = desk.reader.in_force(row.type)
    return known is None or known.workflow != row.workflow or not known.is_suspended


def stale_contracts(desk: CallContext, owner: str, type_: str) -> list[StaleContract]:
    """The contracts of an owner whose bare workflows are to be compiled again."""
    shelf = Catalog(desk)
    found = shelf.ask(lambda each: each.listed(owner, kind="effective", type_=type_))
    bare = [each for each in found if each.tenant == owner and each.body is None and is_stale(desk, each)]
    known = {each.id: each for row in bare for each in shelf.contracts(row.type, owner)}
    return [StaleContract(shelf.whole(known[each.envelope or ""]), each.id) for each in bare]


def contract_of(row: StoredBlueprint) -> Contract:
    """What a stored contract says; DefinitionError if something changed it."""
    return _read(row, Contract)


def body_of(row: StoredBlueprint) -> Body:
    """What a stored body says; DefinitionError if something changed it, or if it is a draft whose form has mistakes."""
    kept = _malformed(row)
    return _read(row, Body) if kept is None else read_body(kept.source, name=f"the draft {row.id}")


def _read(row: StoredBlueprint, kind: type[B]) -> B:
    try:
        found = msgspec.json.decode(row.content, type=settled(kind))
        plain = msgspec.json.decode(row.content, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _changed(row) from error
    if plain_hash(plain) != row.hash:
        raise _changed(row)
    return found


def _changed(row: StoredBlueprint) -> DefinitionError:
    told = f"what is stored of {row.type!r} is not what was published: something changed it; restore it"
    return DefinitionError(f"the {row.kind} of {row.type}", [Diagnostic(HASH_MISMATCH, told, row.id)])


def content_of(part: Contract | Body) -> bytes:
    """A contract or a body as it is stored."""
    return msgspec.json.encode(with_default_texts(msgspec.structs.replace(part, hash=None)))


def checked_version(given: object, what: str = "version", *, least: int = 0) -> int:
    """The number of a version; 0 is the newest, or the one in force."""
    if isinstance(given, int) and not isinstance(given, bool) and least <= given <= MOST_VERSIONS:
        return given
    raise PayloadError(f"the {what} is a whole number from {least}, not {given!r}")


def _references(fields: Iterable[Field]) -> Iterator[str]:
    """The types that fields refer to, those inside of lists and objects included."""
    pending = list(fields)
    while pending:
        match pending.pop():
            case RefField(of=of):
                yield of
            case ListField(items=items) if items is not None:
                pending.append(items)
            case ObjectField(fields=inner):
                pending.extend(inner.values())
            case _:
                pass
