"""Valid files made wrong at random: as text, character by character, and as values that stand where others belong."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from authoring.process.examples import ORDERS, templates, text_of

PIECES = (
    "", " ", "\n", "\t", ":", "- ", "[", "]", "{", "}", "'", '"', "*a", "&a ", "!x ", "#", "? ", "|", ">", "%", "---\n", "~", "true",
    "7", "1e9", "\x00", "\x85", "\u2028", "é", "\U0001f600", "\ud800", "<<: *a", "steps", "review", "completed", "workflow.", "\\",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 7, 10**15, 1.5, "", " ", "x", "*", "review", "completed", "timeout", "error", "1h", "0s", "999999999w",
    "workflow.x", "'", "{", "{workflow.x}", "#timeout", "cond#1", "x" * 300, "a\x00b", "\u202e", [], {}, [[]], [{}], {"": 1},
    {"id": "review"}, {"field": "x"}, {"type": "object", "properties": {}},
)  # fmt: skip


def corrupted(rng: Random) -> str:
    """A file that somebody has damaged."""
    if rng.random() < 0.5:
        return _as_text(rng)
    return _as_values(rng)


def _as_text(rng: Random) -> str:
    files = [text_of(ORDERS), *templates().values()]
    text = rng.choice(files)
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(text))
        end = start + rng.choice((0, 1, 1, 3, 20, 200))
        piece = rng.choice((*PIECES, text[rng.randrange(len(text)) :][: rng.randrange(40)]))
        text = text[:start] + piece + text[end:]
    return text


def _as_values(rng: Random) -> str:
    file = json.loads(text_of(ORDERS))
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = _places(file)
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(4):
            case 0:
                holder[key] = rng.choice(VALUES)
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("tilte", "id", "event", "timeout", "operation", "x"))] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.append(rng.choice((*VALUES, holder[key])))
            case _:
                del holder[key]
    return text_of(file)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a file that holds a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [each for key in keys for each in _places(value[key])]
