"""A version of a document as a page that can be read and not edited: plain HTML, without styles, scripts or anything that is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import cast

import msgspec

from standfast.calls.context import CallContext
from standfast.features.documents.content.reads import FoundDocument, kept_version
from standfast.graph.field_visibility import MASKED
from standfast.machine.documents.visibility import printed, unseen
from standfast.store.ports.reading import TenantReader

Data = dict[str, object]
_decode = msgspec.json.Decoder(dict[str, object]).decode

_DEEPEST = 20
"""Tables within tables; what lies deeper is shown as text."""


def page_of(desk: CallContext, reader: TenantReader, known: FoundDocument, number: int | None) -> str:
    """One version, or the newest one; NotFoundError if the document never had it."""
    document = known.document
    row = kept_version(reader, known, document.version if number is None else number)
    data, actor = _decode(row.data), desk.request.actor
    title = f"{document.type} {document.id}, version {row.version}"
    facts: Data = {
        "document": f"{document.type}/{document.id}",
        "version": row.version,
        "status": row.status,
        "hash": MASKED if unseen(known.parts.spec, data, actor) else row.data_hash,
        "written": f"{row.written_at.isoformat(timespec='seconds')} by {row.written_by or 'system'}",
    }
    if row.version != document.version:
        facts["now"] = f"version {document.version}, {document.status}"
    if document.superseded_by:
        facts["replaced by"] = f"{document.type}/{document.superseded_by}"
    shown = printed(known.parts.spec.fields, data, actor)
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>',
        "<body>",
        f"<h1>{escape(title)}</h1>",
        *_table(facts),
        "<h2>Content</h2>",
        *_table(shown),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _table(values: Mapping[str, object], depth: int = 0) -> Iterator[str]:
    yield "<table>"
    for name, value in values.items():
        yield f'<tr><th scope="row">{escape(name)}</th><td>{_cell(value, depth)}</td></tr>'
    yield "</table>"


def _cell(value: object, depth: int) -> str:
    if depth < _DEEPEST:
        if isinstance(value, dict):
            return "".join(_table(cast("Data", value), depth + 1))
        if isinstance(value, list):
            entries = "".join(f"<li>{_cell(each, depth + 1)}</li>" for each in cast("list[object]", value))
            return f"<ol>{entries}</ol>"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return escape(text)
