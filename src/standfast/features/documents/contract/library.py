"""What comes with the package: contracts that are ready for use, and templates of what organisations add to them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from standfast.errors import NotFoundError
from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.loading import read_contract

_CONTRACTS: Final = "contracts"
_ENDING: Final = ".yaml"


def contract_names() -> tuple[str, ...]:
    """The names of the ready contracts."""
    return names_in(_CONTRACTS)


@cache
def ready_contract(name: str) -> Contract:
    """A ready contract; NotFoundError with the names that there are."""
    return read_contract(file_in(_CONTRACTS, name), name=f"the contract {name}")


@cache
def names_in(folder: str) -> tuple[str, ...]:
    """The names of the files of a folder of the package."""
    files = resources.files(__package__).joinpath(folder).iterdir()
    return tuple(sorted(each.name.removesuffix(_ENDING) for each in files if each.name.endswith(_ENDING)))


def file_in(folder: str, name: str) -> str:
    """The text of a file of the package; NotFoundError with the names that there are."""
    known = names_in(folder)
    if name not in known:
        told = suggestion(name, known).removeprefix("; ") or f"there are {', '.join(known)}"
        raise NotFoundError(folder.removesuffix("s"), name, hint=told)
    return resources.files(__package__).joinpath(folder, f"{name}{_ENDING}").read_text(encoding="utf-8")
