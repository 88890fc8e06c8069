"""Calls of contracts: what a type of documents is, version by version."""

from __future__ import annotations

import builtins

import msgspec

from standfast.calls.authorization import check_unbound
from standfast.calls.context import CallContext, checked_flag, checked_key, checked_text
from standfast.engine.concurrency.replies import Reply
from standfast.errors import Diagnostic, PayloadError, indefinite
from standfast.features.documents.body.format import export_yaml
from standfast.features.documents.compiler.compiler import check_body, compile_effective, rebased
from standfast.features.documents.compiler.contract_changes import ContractChange, contract_changes
from standfast.features.documents.compiler.replacement import fewer_rights
from standfast.features.documents.contract.envelope import Envelope, generate_envelope, version_problem
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.loading import content_hash, read_contract
from standfast.features.documents.publishing.catalog import (
    Catalog,
    StaleContract,
    body_of,
    checked_version,
    contract_of,
    stale_contracts,
)
from standfast.features.documents.publishing.publisher import Compiled, Publisher, reused
from standfast.features.documents.publishing.rejections import (
    DESIGN,
    PUBLISH,
    PUBLISH_CONTRACTS,
    BlueprintRefusal,
    permit,
    refused,
)
from standfast.features.documents.publishing.views import (
    BrokenBody,
    ContractCheck,
    ContractVersion,
    contract_version,
)
from standfast.kernel.actor import RequestContext
from standfast.machine.model.queries.authorization import READ
from standfast.store.ports.documents import StoredBlueprint
from standfast.store.records.instances import SHARED_TENANT


class FutureContracts:
    """What can be asked of contracts, and published. To publish takes the capability `contracts:publish`.

    What the engine itself publishes serves all tenants; what is published on behalf of a tenant is that tenant's own. It stands before a
    shared one of the same type only if that is `replaceable`, and asks for the same rights. Reading takes `execution:read`, or a capability of those who write bodies.
    """

    def __init__(self, desk: CallContext, *, owner: RequestContext | None) -> None:
        self._desk = desk
        self._owner = SHARED_TENANT if owner is None else owner.tenant
        """For whom contracts are published."""

    def publish(
        self, contract: str | bytes | Contract, *, force: bool = False, comment: str = ""
    ) -> Reply[ContractVersion]:
        """Publish a contract, given as YAML, as JSON or as what `read_contract` gives; its envelope becomes one with it.

        New documents of tenants without a body of their own begin with the bare envelope. The same contract again changes nothing.
        RejectedError if its version says something else already, if the lifecycle has changed without its version, if all tenants share a
        contract of the type that is not `replaceable` or asks for more rights, or if published
        bodies would not compile with it any more; `force` publishes it nevertheless: these bodies go on as they were compiled.
        """

        def write() -> ContractVersion:
            desk = self._permitted(PUBLISH_CONTRACTS, what="publish contracts")
            given, shelf = _contract(contract), Catalog(desk)
            is_forced, told = checked_flag(force, "`force`"), checked_text(comment, "comment")
            known = shelf.contracts(given.entity_type, self._owner)
            same = next((each for each in known if each.version == given.version), None)
            if same is not None and same.hash == content_hash(given):
                return contract_version(same, given)
            check = self._checked(shelf, given, known)
            for each in check.problems:
                raise refused(BlueprintRefusal(each.code), each.message)
            if check.broken and not is_forced:
                raise refused(BlueprintRefusal.CONTRACT_BREAKS_BODIES, _breaks(check))
            envelope = generate_envelope(
                msgspec.structs.replace(given, hash=None)
            )  # As it is stored, and compiled again.
            effective = compile_effective(envelope, related=shelf.related(given))
            row = Publisher(desk, self._owner).publish_contract(envelope, effective, comment=told)
            return contract_version(row, given)

        return self._desk.act(write)

    def recompile(self, type: str = "", *, dry_run: bool = False) -> Reply[builtins.list[ContractVersion]]:  # noqa: A002 - see get
        """Compile again the bare workflows of contracts that an older version of the compiler has compiled. Returns those, or with `dry_run` what would be.

        Each becomes a new version of the workflow, for new documents of organisations without a body. A workflow that a newer compiler made, or that
        is taken out of use (`workflows.suspend`), is left alone. Bodies are compiled again by `bodies.recompile`.
        """

        def write() -> builtins.list[ContractVersion]:
            desk = self._permitted(PUBLISH_CONTRACTS, what="compile contracts")
            is_dry = checked_flag(dry_run, "`dry_run`")
            found = stale_contracts(desk, self._owner, checked_key(type, "type", may_be_empty=True))
            made = found if is_dry else [each for each in found if self._recompiled(desk, each)]
            return [contract_version(each.contract) for each in made]

        return self._desk.read(write)

    def _recompiled(self, desk: CallContext, stale: StaleContract) -> bool:
        contract = contract_of(stale.contract)
        effective = compile_effective(generate_envelope(contract), related=Catalog(desk).related(contract))
        return Publisher(desk, self._owner).recompile(Compiled(effective, stale.contract, None), stale.effective)

    def check(self, contract: str | bytes | Contract) -> Reply[ContractCheck]:
        """What publishing a contract would mean: what it changes, which published bodies it breaks; nothing is stored."""

        def read() -> ContractCheck:
            desk, given = self._reading(), _contract(contract)
            shelf = Catalog(desk)
            return self._checked(shelf, given, shelf.contracts(given.entity_type, self._owner))

        return self._desk.read(read)

    def get(self, type: str, version: int = 0) -> Reply[ContractVersion]:  # noqa: A002 - the word that everybody uses for it
        """One version of a contract, the newest if none is given."""

        def read() -> ContractVersion:
            row = self._row(type, version)
            return contract_version(row, contract_of(row))

        return self._desk.read(read)

    def list(self) -> Reply[builtins.list[ContractVersion]]:
        """The newest version of each contract that the tenant has or shares, by type; its own stand before shared ones."""

        def read() -> builtins.list[ContractVersion]:
            shelf = Catalog(self._reading())
            types = {each.type for each in shelf.ask(lambda kept: kept.listed(shelf.tenant, kind="envelope"))}
            return [contract_version(shelf.contracts(each)[-1]) for each in sorted(types)]

        return self._desk.read(read)

    def versions(self, type: str) -> Reply[builtins.list[ContractVersion]]:  # noqa: A002 - see get
        """All versions of a contract, oldest first."""
        return self._desk.read(
            lambda: [contract_version(each) for each in Catalog(self._reading()).contracts(checked_key(type, "type"))]
        )

    def diff(self, type: str, old: int, new: int = 0) -> Reply[builtins.list[ContractChange]]:  # noqa: A002 - see get
        """What differs between two versions of a contract, the newest if `new` is not given."""

        def read() -> builtins.list[ContractChange]:
            pair = [contract_of(self._row(type, checked_version(each))) for each in (old, new)]
            return contract_changes(pair[0], pair[1])

        return self._desk.read(read)

    def export(self, type: str, version: int = 0) -> Reply[str]:  # noqa: A002 - see get
        """A version of a contract as YAML with its hash, to be kept in git; `publish` takes it back."""
        return self._desk.read(lambda: export_yaml(contract_of(self._row(type, version))))

    # -- how

    def _row(self, type_: object, version: int) -> StoredBlueprint:
        return Catalog(self._reading()).contract_row(checked_key(type_, "type"), checked_version(version))

    def _checked(self, shelf: Catalog, contract: Contract, known: builtins.list[StoredBlueprint]) -> ContractCheck:
        envelope = generate_envelope(contract)
        changes, problems = builtins.list[ContractChange](), builtins.list[Diagnostic]()
        if known:
            changes = contract_changes(contract_of(shelf.whole(known[-1])), contract)
            problems = self._version_problems(shelf, envelope, known)
        problems += self._shared_problems(shelf, contract)
        return ContractCheck(
            type=contract.entity_type,
            version=contract.version,
            changes=changes,
            broken=self._broken(shelf, envelope),
            problems=problems,
        )

    def _version_problems(
        self, shelf: Catalog, envelope: Envelope, known: builtins.list[StoredBlueprint]
    ) -> builtins.list[Diagnostic]:
        contract, found = envelope.contract, builtins.list[Diagnostic]()
        is_same = any(each.version == contract.version and each.hash == content_hash(contract) for each in known)
        if known[-1].version >= contract.version and not is_same:
            told = reused(contract, known[-1].version)
            found.append(Diagnostic(BlueprintRefusal.CONTRACT_VERSION_REUSED.value, told, contract.entity_type))
        before = [each for each in known if each.envelope_version == envelope.version]
        if before:
            old = generate_envelope(contract_of(shelf.whole(before[-1])))
            problem = version_problem(old, envelope)
            found += [] if problem is None else [problem]
        return found

    def _shared_problems(self, shelf: Catalog, contract: Contract) -> builtins.list[Diagnostic]:
        """Why a tenant's contract may not stand before the shared one of its type."""
        rows = [] if self._owner == SHARED_TENANT else shelf.contracts(contract.entity_type, SHARED_TENANT)
        if not rows:
            return []
        shared, code = contract_of(shelf.whole(rows[-1])), BlueprintRefusal.CONTRACT_FEWER_RIGHTS
        if not shared.replaceable:
            told = f"all tenants share a contract of {contract.entity_type!r}, which tenants may not replace; take another type"
            told = f"{told}, or have the shared one published with `replaceable`"
            return [Diagnostic(BlueprintRefusal.CONTRACT_SHARED.value, told, contract.entity_type)]
        found = fewer_rights(shared, contract, related=shelf.related(contract))
        return [Diagnostic(code.value, each, contract.entity_type) for each in found]

    def _broken(self, shelf: Catalog, envelope: Envelope) -> builtins.list[BrokenBody]:
        """The published bodies that would not compile with a new contract: those of all tenants that have no contract of their own."""
        found = shelf.ask(lambda each: each.in_force_everywhere(envelope.entity_type))
        concerned = [each for each in found if self._is_concerned(shelf, each)]
        related = shelf.related(envelope.contract)
        broken = []
        for row in concerned:
            problems = check_body(envelope, rebased(body_of(row), envelope), related=related)
            if problems:
                broken.append(BrokenBody(tenant=row.tenant, type=row.type, version=row.version, problems=problems))
        return broken

    def _is_concerned(self, shelf: Catalog, row: StoredBlueprint) -> bool:
        if self._owner != SHARED_TENANT:
            return row.tenant == self._owner
        return not shelf.contracts(row.type, row.tenant)

    def _reading(self) -> CallContext:
        return self._permitted(READ, DESIGN, PUBLISH, PUBLISH_CONTRACTS, what="look at contracts")

    def _permitted(self, *capabilities: str, what: str) -> CallContext:
        desk = self._desk.looked_up()
        permit(desk.request.actor, what, *capabilities)
        if len(capabilities) > 1:  # To look at them is for several.
            return desk
        check_unbound(desk, "contracts")
        return desk.needing(*capabilities)


def _contract(given: object) -> Contract:
    """A contract that a caller gives, checked as one that is read from a file."""
    if isinstance(given, Contract):
        return read_contract(export_yaml(given))
    if isinstance(given, str | bytes):
        return read_contract(given)
    raise PayloadError(
        f"a contract is given as YAML, as JSON, or as what read_contract gives, not as {indefinite(type(given))}"
    )


def _breaks(check: ContractCheck) -> str:
    """Which bodies a contract breaks, and how, in a few lines."""
    lines = [
        f"{each.tenant!r} version {each.version}: {'; '.join(problem.message for problem in each.problems[:3])}"
        for each in check.broken
    ]
    told = f"{len(check.broken)} published bodies of {check.type!r} would not compile with version {check.version} of the contract"
    return f"{told}: {'. '.join(lines)}. Change the contract, or publish it by force: they go on as they were compiled"
