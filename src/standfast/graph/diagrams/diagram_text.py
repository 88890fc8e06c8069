"""Escaping for Mermaid and DOT, and the statements of a diagram.

Keys of boxes are generated and never taken from names, so that no name can act as a keyword.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from standfast.expressions.model.characters import JOINERS, escaped, is_hidden

LONGEST_TEXT = 120
"""Maximum length of a displayed name or condition."""

_SIGNS = re.compile(r"(?<![^\W_])[_-]|[_-](?![^\W_])|[^\w -]")
"""All characters but letters, digits, spaces, and connectors inside words."""


def in_mermaid(*lines: str) -> str:
    """Return lines as one label.

    All other characters become entities, so that Mermaid and Markdown interpret none of them.
    """
    return "<br/>".join(_SIGNS.sub(_entity, _shown(line)) or " " for line in lines)


def in_dot(*lines: str) -> str:
    """Return lines as one quoted text. `&` and backslashes are escaped, because DOT interprets them in labels."""
    safe = (_shown(line).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(safe) + '"'


def dot_box(key: str, lines: Iterable[str], *marks: str) -> str:
    """Return the statement of a node."""
    return f"{key} [{', '.join([f'label={in_dot(*lines)}', *marks])}];"


def dot_arrow(source: str, target: str, label: str = "", *marks: str) -> str:
    """Return the statement of an edge, with its label if there is one."""
    attributes = ", ".join([*([f"label={in_dot(label)}"] if label else []), *marks])
    return f"{source} -> {target}{f' [{attributes}]' if attributes else ''};"


def digraph(title: str, statements: Iterable[str]) -> str:
    """Return a complete DOT diagram."""
    return written(f"digraph {in_dot(title)} {{", statements, "}")


def written(head: str, statements: Iterable[str], *foot: str) -> str:
    """Return the text of a diagram: the statements, one per line, under its head."""
    return "\n".join([head, *(f"    {statement}" for statement in statements), *foot]) + "\n"


def _entity(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};"


def _shown(text: str) -> str:
    """Return text as one line of limited length with visible characters only."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= LONGEST_TEXT else f"{flat[:LONGEST_TEXT]}…"
    return "".join(escaped(each) if is_hidden(each) and each not in JOINERS else each for each in short)
