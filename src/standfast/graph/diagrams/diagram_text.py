"""Mermaid and DOT: how a text from outside is written in them, and the statements that every picture is made of.

Keys of boxes are made by whoever draws, never from names, so that no name is ever taken for a word of the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from standfast.expressions.model.characters import JOINERS, escaped, is_hidden

LONGEST_TEXT = 120
"""Characters of a name or condition that a picture shows."""

_SIGNS = re.compile(r"(?<![^\W_])[_-]|[_-](?![^\W_])|[^\w -]")
"""All but letters, digits, spaces, and what joins the parts of a word."""


def in_mermaid(*lines: str) -> str:
    """Lines as one label. What is not a letter or a digit becomes an entity, so neither Mermaid nor Markdown finds a sign to act on."""
    return "<br/>".join(_SIGNS.sub(_entity, _shown(line)) or " " for line in lines)


def in_dot(*lines: str) -> str:
    """Lines as one quoted text. `&` begins an entity in a label, and a backslash an escape such as the name of the node."""
    safe = (_shown(line).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(safe) + '"'


def dot_box(key: str, lines: Iterable[str], *marks: str) -> str:
    """The statement of a node."""
    return f"{key} [{', '.join([f'label={in_dot(*lines)}', *marks])}];"


def dot_arrow(source: str, target: str, label: str = "", *marks: str) -> str:
    """The statement of an edge, with its label if it has one."""
    attributes = ", ".join([*([f"label={in_dot(label)}"] if label else []), *marks])
    return f"{source} -> {target}{f' [{attributes}]' if attributes else ''};"


def digraph(title: str, statements: Iterable[str]) -> str:
    """The whole of a picture in DOT."""
    return written(f"digraph {in_dot(title)} {{", statements, "}")


def written(head: str, statements: Iterable[str], *foot: str) -> str:
    """The text of a picture: statements, a line each, under its head."""
    return "\n".join([head, *(f"    {statement}" for statement in statements), *foot]) + "\n"


def _entity(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};"


def _shown(text: str) -> str:
    """Text on one line, with a bearable length and nothing hidden in it."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= LONGEST_TEXT else f"{flat[:LONGEST_TEXT]}…"
    return "".join(escaped(each) if is_hidden(each) and each not in JOINERS else each for each in short)
