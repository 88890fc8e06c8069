"""What differs between two versions of a document, field by field; of sensitive fields only that they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from standfast.features.documents.compiler.document_spec import fields_of
from standfast.features.documents.contract.format import Contract
from standfast.graph.document_spec import DocumentField
from standfast.graph.field_visibility import MASKED

_ABSENT: Final = object()


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field that differs."""

    field: str
    """Its path: `lines[2].amount`."""
    how: Literal["added", "removed", "changed"]
    old: object = None
    new: object = None
    is_masked: bool = False
    """Whether the values are not shown, because the contract calls the field sensitive or the reader has none of its roles."""


def document_diff(
    contract: Contract, old: Mapping[str, object], new: Mapping[str, object], *, roles: frozenset[str] | None = None
) -> list[FieldChange]:
    """What differs between the data of two versions, in the order of the fields; `roles` are the reader's, None means all of them."""
    return list(_object(fields_of(contract), old, new, "", _Reader(roles), is_masked=False))


def document_diff_text(changes: list[FieldChange]) -> str:
    """The same for people, a line each."""
    return "".join(f"{_line(each)}\n" for each in changes) or "no field differs\n"


class _Reader(msgspec.Struct, frozen=True):
    """Whoever reads the difference."""

    roles: frozenset[str] | None

    def is_blind_to(self, field: DocumentField | None) -> bool:
        """Whether the values of a field are not shown."""
        if field is None:
            return False
        is_hidden = self.roles is not None and any(self.roles.isdisjoint(each) for each in field.audience)
        return field.sensitive or is_hidden


def _object(  # noqa: PLR0917 - two objects and where they are
    fields: Mapping[str, DocumentField],
    old: Mapping[str, object],
    new: Mapping[str, object],
    at: str,
    reader: _Reader,
    *,
    is_masked: bool,
) -> Iterator[FieldChange]:
    names = [*fields, *sorted((old.keys() | new.keys()) - fields.keys())]
    for name in names:
        field = fields.get(name)
        path = f"{at}.{name}" if at else name
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        yield from _value(field, before, after, path, reader, is_masked=is_masked or reader.is_blind_to(field))


def _value(  # noqa: PLR0917 - two values and where they are
    field: DocumentField | None, old: object, new: object, at: str, reader: _Reader, *, is_masked: bool
) -> Iterator[FieldChange]:
    if old is new or (type(old) is type(new) and old == new):
        return
    match old, new:
        case Mapping(), Mapping():
            inner = {} if field is None else field.fields
            yield from _object(inner, old, new, at, reader, is_masked=is_masked)
        case list(), list():
            item = None if field is None else field.items
            for place in range(max(len(old), len(new))):
                before = old[place] if place < len(old) else _ABSENT
                after = new[place] if place < len(new) else _ABSENT
                hidden = is_masked or reader.is_blind_to(item)
                yield from _value(item, before, after, f"{at}[{place}]", reader, is_masked=hidden)
        case _:
            yield _changed(field, old, new, at, reader, is_masked=is_masked)


def _changed(  # noqa: PLR0917 - two values and where they are
    field: DocumentField | None, old: object, new: object, at: str, reader: _Reader, *, is_masked: bool
) -> FieldChange:
    how: Literal["added", "removed", "changed"] = "changed"
    if old is _ABSENT or new is _ABSENT:
        how = "added" if old is _ABSENT else "removed"
    before, after = (
        None if each is _ABSENT else MASKED if is_masked else _shown(field, each, reader) for each in (old, new)
    )
    return FieldChange(field=at, how=how, old=before, new=after, is_masked=is_masked)


def _shown(field: DocumentField | None, value: object, reader: _Reader) -> object:
    """A value that came or went as a whole, without the parts of it that are not shown."""
    match field, value:
        case DocumentField(type="object", fields=fields), Mapping():
            return {
                name: MASKED if reader.is_blind_to(fields.get(name)) else _shown(fields.get(name), each, reader)
                for name, each in value.items()
            }
        case DocumentField(type="list", items=item), list():
            return [MASKED if reader.is_blind_to(item) else _shown(item, each, reader) for each in value]
        case _:
            return value


def _line(change: FieldChange) -> str:
    if change.is_masked:
        return f"~ {change.field}: changed"
    old, new = (msgspec.json.encode(each, order="sorted").decode() for each in (change.old, change.new))
    match change.how:
        case "added":
            return f"+ {change.field}: {new}"
        case "removed":
            return f"- {change.field}: {old}"
        case "changed":
            return f"~ {change.field}: {old} → {new}"
