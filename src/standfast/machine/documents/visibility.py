"""Whose eyes the content of a document is for: what is masked for whom, and what was a mask already when it came in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import msgspec

from standfast.errors import ForbiddenError, PayloadError
from standfast.graph.document_spec import DocumentField, DocumentSpec
from standfast.graph.field_visibility import MASKED, Audience
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED
from standfast.machine.model.queries.fields import holds_any, is_same, masked

Data = dict[str, object]

_CONTENT = {"document_created": "data", "document_changed": "changes"}
"""The events that hold content, and under which name."""
_SUPERSEDED = "document_superseded"
_RELATED = "related"
"""The name under which events hold what was read of other documents."""


def is_for(audience: Audience, actor: Actor) -> bool:
    """Whether somebody may see what is for an audience."""
    return all(actor.is_one_of(frozenset(roles)) for roles in audience)


def visible(spec: DocumentSpec | None, data: Mapping[str, object], actor: Actor) -> Data:
    """The content, with the values masked that are for others' eyes. It is the caller's own: lists and objects in it are new."""
    fields = {} if spec is None else spec.fields
    hides = hidden_from(actor)
    shown = {
        name: masked(fields[name], value, hides, MASKED) if name in fields else value for name, value in data.items()
    }
    return cast("Data", msgspec.to_builtins(shown))


def changes_shown(spec: DocumentSpec, changes: Mapping[str, object], actor: Actor) -> Data:
    """What a mutation has changed, each field with its values before and after."""
    hides = hidden_from(actor)
    return {name: _pair_shown(spec.fields.get(name), value, hides) for name, value in changes.items()}


def _pair_shown(field: DocumentField | None, value: object, hides: Callable[[DocumentField], bool]) -> object:
    if field is None:
        return value
    if hides(field):
        return MASKED
    return [masked(field, each, hides, MASKED) for each in value] if isinstance(value, list) else value


def compared(field: DocumentField | None, value: object, actor: Actor) -> tuple[object, bool]:
    """A value as a comparison shows it, and whether it or a part of it is masked: sensitive, or for others' eyes."""
    hides = _unshown_to(actor)
    if field is None or not holds_any(field, hides):
        return value, False
    return masked(field, value, hides, MASKED), True


def printed(fields: Mapping[str, DocumentField], data: Mapping[str, object], actor: Actor) -> Data:
    """The content as a page shows it that may be handed on: what is sensitive is masked too, however deep it lies."""
    hides = _unshown_to(actor)
    return {
        name: masked(fields[name], value, hides, MASKED) if name in fields else value for name, value in data.items()
    }


def unshown(spec: DocumentSpec, actor: Actor) -> set[str]:
    """The fields that are not told of, because they or a part of them are sensitive, or for others' eyes."""
    return {name for name, field in spec.fields.items() if holds_any(field, _unshown_to(actor))}


def said(spec: DocumentSpec | None, event: str, data: Data, actor: Actor) -> Data:
    """What an event says in a history: of its content nothing that is sensitive, or for others' eyes; nothing at all if nobody knows what is."""
    if data.get(_RELATED) and actor.kind != "system":  # Values of other documents, whose contract is not at hand.
        data = {**data, _RELATED: MASKED}
    if event == _SUPERSEDED:
        return _amendment_said(spec, data, actor)
    name = _CONTENT.get(event, "")
    content = data.get(name)
    if not isinstance(content, dict):
        return data
    hides, fields = _unshown_to(actor), {} if spec is None else spec.fields
    shown = {
        each: masked(fields[each], value, hides, MASKED) if each in fields else MASKED
        for each, value in content.items()
    }
    return {**data, name: shown}


def _amendment_said(spec: DocumentSpec | None, data: Data, actor: Actor) -> Data:
    """What an amendment has changed: pairs of values, masked like the content."""
    changes = data.get("changes")
    if not isinstance(changes, dict):
        return data
    hides, fields = _unshown_to(actor), {} if spec is None else spec.fields
    shown = {
        name: _pair_shown(fields[name], each, hides) if name in fields else MASKED for name, each in changes.items()
    }
    return {**data, "changes": shown}


def refuse_masks(spec: DocumentSpec, given: Mapping[str, object], actor: Actor) -> None:
    """PayloadError if somebody gives back what they were shown in the place of a value: it would be written over that."""
    hides = hidden_from(actor)
    for name, value in given.items():
        field = spec.fields.get(name)
        if field is not None and holds_any(field, hides) and _holds_mask(field, value, hides):
            told_ = f"{name!r} holds {MASKED!r} where a value is that is not for the eyes of {actor.id!r}"
            instead = "leave the field out, and it stays as it is"
            if not hides(field):
                instead = f"leave the field out, or leave out what is masked in {name!r}: what is there stays"
            raise PayloadError(f"{told_}; {instead}")


class HiddenPartError(Exception):
    """An edit would take away parts of a field that its author does not see."""


def with_hidden_parts(spec: DocumentSpec, before: Data, changes: Data, actor: Actor) -> Data:
    """The changes of somebody, with the parts of lists and objects that they do not see as they were. HiddenPartError if these would be lost."""
    hides = hidden_from(actor)
    found = dict(changes)
    for name, value in changes.items():
        field = spec.fields.get(name)
        if field is None or hides(field) or not holds_any(field, hides) or name not in before:
            continue
        try:
            found[name] = _kept(field, before[name], value, hides)
        except HiddenPartError:
            told_ = (
                f"{name!r} holds values that are not for the eyes of {actor.id!r}, and this edit would take them away"
            )
            instead = "keep each entry in its place, and at least one of its values as it is"
            roles = " or ".join(sorted({repr(role) for role in _roles_within(field)}))
            raise HiddenPartError(f"{told_}; {instead}, or have somebody with the role {roles} edit it") from None
    return found


def _kept(field: DocumentField, old: object, new: object, hides: Callable[[DocumentField], bool]) -> object:
    """A new value with the hidden parts of the old one."""
    if not _holds_hidden(field, old, hides):
        return new
    if hides(field):
        return old if new is None else new
    if isinstance(old, dict) and isinstance(new, dict):
        parts = {
            name: _kept(each, old[name], new.get(name), hides)
            for name, each in field.fields.items()
            if name in old and _holds_hidden(each, old[name], hides)
        }
        return {**new, **parts}
    if isinstance(old, list) and isinstance(new, list) and field.items is not None:
        return _kept_items(field.items, old, new, hides)
    raise HiddenPartError


def _kept_items(
    item: DocumentField, old: list[object], new: list[object], hides: Callable[[DocumentField], bool]
) -> list[object]:
    """The entries of a new list, each with the hidden parts of the old one that it is: one that looks the same, or the changed one in its place."""
    was, now = ([_seen_of(item, each, hides) for each in entries] for entries in (old, new))
    left = dict.fromkeys(range(len(old)))
    found = dict[int, int]()
    for place, each in enumerate(now):
        same = [other for other in (place, *left) if other in left and is_same(was[other], each)]
        if same:
            found[place] = same[0]
            del left[same[0]]
    if len(old) == len(new):
        for place in [each for each in left if each not in found and _is_akin(was[each], now[each])]:
            found[place] = place
            del left[place]
    if any(_holds_hidden(item, old[each], hides) for each in left):
        raise HiddenPartError
    return [_kept(item, old[found[at]], each, hides) if at in found else each for at, each in enumerate(new)]


def _is_akin(one: object, other: object) -> bool:
    """Whether two entries have a value in common, so that one is the other with a change."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return any(name in other and value is not None and is_same(value, other[name]) for name, value in one.items())


def _seen_of(field: DocumentField, value: object, hides: Callable[[DocumentField], bool]) -> object:
    """A value without its hidden parts."""
    if isinstance(value, dict) and field.fields:
        known = field.fields
        return {
            name: _seen_of(known[name], each, hides) if name in known else each
            for name, each in value.items()
            if each is not None and (name not in known or not hides(known[name]))
        }
    if isinstance(value, list) and field.items is not None:
        inner = field.items
        return [_seen_of(inner, each, hides) for each in value]
    return None if hides(field) else value


def _holds_hidden(field: DocumentField, value: object, hides: Callable[[DocumentField], bool]) -> bool:
    """Whether a value holds something that is not shown."""
    if value is None:
        return False
    if hides(field):
        return True
    if isinstance(value, list) and field.items is not None:
        inner = field.items
        return any(_holds_hidden(inner, each, hides) for each in value)
    if isinstance(value, dict):
        return any(_holds_hidden(each, value.get(name), hides) for name, each in field.fields.items())
    return False


def _roles_within(field: DocumentField) -> Iterator[str]:
    """The roles that parts of a field are for."""
    for audience in field.audience:
        yield from audience
    for each in (*field.fields.values(), *(() if field.items is None else (field.items,))):
        yield from _roles_within(each)


def unseen(spec: DocumentSpec, data: Mapping[str, object], actor: Actor) -> list[str]:
    """The fields of a content that are for others' eyes, or a part of them is."""
    hides = hidden_from(actor)
    return sorted(name for name in data if name in spec.fields and holds_any(spec.fields[name], hides))


def check_all_seen(spec: DocumentSpec, data: Mapping[str, object], actor: Actor) -> None:
    """ForbiddenError if a part of a content is for others' eyes: steps, or data, of somebody's own would tell them of it."""
    hidden = unseen(spec, data, actor)
    if hidden:
        told_ = f"{', '.join(map(repr, hidden))} of it are not for the eyes of {actor.id!r}, and steps of a draft, or data that is compared with them, could tell of them"
        raise ForbiddenError(reason=NOT_ALLOWED, message=f"{told_}; try it out with data of your own alone")


def _holds_mask(field: DocumentField, value: object, hides: Callable[[DocumentField], bool]) -> bool:
    if hides(field):
        return value == MASKED
    if isinstance(value, list) and field.items is not None:
        inner = field.items
        return any(_holds_mask(inner, each, hides) for each in value)
    if isinstance(value, dict):
        return any(_holds_mask(field.fields[name], each, hides) for name, each in value.items() if name in field.fields)
    return False


def hidden_from(actor: Actor) -> Callable[[DocumentField], bool]:
    """Tells which fields somebody may not see."""
    return lambda field: bool(audience := field.audience) and not is_for(audience, actor)


def _unshown_to(actor: Actor) -> Callable[[DocumentField], bool]:
    hides = hidden_from(actor)
    return lambda field: field.sensitive or hides(field)
