"""From the file of a contract to the contract, or to everything that is wrong with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from standfast.errors import ConfigurationError, DefinitionError, Diagnostic, PayloadError, indefinite
from standfast.features.documents.contract.checks import ContractChecks
from standfast.features.documents.contract.format import Contract
from standfast.graph.source_files.json_schema import schema_of
from standfast.graph.source_files.parsing import parse
from standfast.graph.source_files.reading import EnoughError, Findings, StructReader
from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.codec.defaults import with_default_texts

TITLE: Final = "Standfast entity contract"
CHANGED: Final = "hash_mismatch"


def read_contract(text: str | bytes, *, name: str = "the contract") -> Contract:
    """The contract of a file in YAML or JSON; DefinitionError with every mistake, its line and column, and what to do."""
    findings = Findings([])
    contract: Contract | None = None
    with suppress(EnoughError):
        contract = _read(given_text(text, "a contract"), findings)
    if findings.found or contract is None:
        raise DefinitionError(name, sorted(findings.found, key=by_place))
    return contract


def contract_schema() -> dict[str, object]:
    """The JSON Schema of contracts, as plain data."""
    return schema_of(Contract, TITLE)


def contract_hash(contract: Contract) -> str:
    """The hash over what a contract says."""
    return content_hash(contract)


def content_hash(part: msgspec.Struct) -> str:
    """The hash over what a file says, the hash that it may hold left out."""
    return plain_hash(msgspec.to_builtins(with_default_texts(part)))


def plain_hash(plain: dict[str, object]) -> str:
    """The same over plain data, as it is stored."""
    return canonical_hash({name: value for name, value in plain.items() if name != "hash"})


def given_text(text: object, what: str) -> str | bytes:
    """What a caller gave as the text of a file; ConfigurationError if it is none."""
    if not isinstance(text, str | bytes):
        raise ConfigurationError(f"{what} is given as YAML or JSON, not as {indefinite(type(text))}")
    return text


def by_place(finding: Diagnostic) -> tuple[int, int]:
    """Where in a file a finding is."""
    line, _, column = finding.position.partition(":")
    return int(line or 0), int(column or 0)


def check_hash(part: msgspec.Struct, given: str | None, reader: StructReader, findings: Findings) -> None:
    """Find a file that was exported and changed since."""
    try:
        actual = content_hash(part)
    except PayloadError as error:
        findings.add(
            "number", f"the file holds a value that cannot be kept: {error}; use whole numbers", reader.at(part)
        )
        return
    if given is not None and given != actual:
        message = "the file is not the one that was exported: something changed it; remove `hash` to take it as it is"
        findings.add(CHANGED, message, reader.at(part, "hash"))


def _read(text: str | bytes, findings: Findings) -> Contract | None:
    tree = parse(text, findings.found)
    if tree is None:
        return None
    reader = StructReader(findings, noun="field")
    contract = reader.read(Contract, tree)
    if contract is None:
        return None
    ContractChecks(contract, reader, findings).run()
    check_hash(contract, contract.hash, reader, findings)
    return contract
