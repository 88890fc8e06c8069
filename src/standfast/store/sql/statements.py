"""SQL statements by name. Each driver keeps them in `.sql` files, in blocks that begin with `-- name: …`.

A file is read once into a frozen record with an attribute per statement. Type checkers find misspelt names, and a test
finds unused statements.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TypeVar

import msgspec

Shape = TypeVar("Shape", bound=msgspec.Struct)

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def read_statements(shape: type[Shape], package: str, file: str) -> Shape:
    """Return the statements of `file` as a record. Its fields must match the names in the file exactly."""
    text = (resources.files(package) / "sql" / file).read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    statements = {name: _strip(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
    declared = set(shape.__struct_fields__)
    assert statements.keys() == declared, (
        f"{package}/{file}: {sorted(statements.keys() ^ declared)} differ from {shape.__name__}"
    )
    return shape(**statements)


def _strip(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.lstrip().startswith("--"))
    return " ".join(" ".join(lines).split()).removesuffix(";")


def numbered(statement: str) -> str:
    """Number the placeholders of a statement, as Postgres requires: the first `?` becomes `$1`."""
    count = iter(range(1, statement.count("?") + 1))
    return re.sub(r"\?", lambda _: f"${next(count)}", statement)


def read_numbered(shape: type[Shape], package: str, file: str) -> Shape:
    """Return the statements like `read_statements`, with numbered placeholders."""
    found = read_statements(shape, package, file)
    return shape(**{name: numbered(text) for name, text in msgspec.structs.asdict(found).items()})
