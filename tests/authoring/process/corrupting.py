"""Valid files made wrong at random: as bytes, as text, line by line, by their indentation, by aliases, and as values that stand where others belong."""

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


def corrupted(rng: Random) -> str | bytes:
    """A file that somebody has damaged."""
    damage = rng.choice(
        (_as_text, _as_text, _as_values, _as_values, _as_bytes, _as_lines, _as_indentation, _as_aliases)
    )
    return damage(rng)


def _file(rng: Random) -> str:
    return rng.choice([text_of(ORDERS), *templates().values()])


def _as_bytes(rng: Random) -> bytes:
    data = bytearray(_file(rng).encode())
    for _ in range(rng.choice((1, 1, 3, 10))):
        place = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                data[place:place] = rng.randbytes(rng.choice((1, 2, 5)))
            case _:
                del data[place : place + rng.choice((1, 5, 100))]
    return bytes(data)


def _as_lines(rng: Random) -> str:
    """Lines that are gone, doubled, or in each other's place."""
    lines = _file(rng).splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 4))):
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                lines[one] = ""
            case 1:
                lines.insert(other, lines[one])
            case 2:
                lines[one], lines[other] = lines[other], lines[one]
            case _:
                lines[one : one + 5] = lines[other : other + 5]
    return "".join(lines)


def _as_indentation(rng: Random) -> str:
    lines = _file(rng).splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 3, 9))):
        place = rng.randrange(len(lines))
        by = rng.choice((" ", "  ", "    ", "\t", ""))
        lines[place] = by + (lines[place].lstrip(" ") if not by else lines[place])
    return "".join(lines)


def _as_aliases(rng: Random) -> str:
    """Values that are names for others: of what comes later, of themselves, of something else."""
    lines = _file(rng).splitlines(keepends=True)
    for place in rng.sample(range(len(lines)), min(len(lines), rng.choice((1, 2, 4)))):
        name, colon, rest = lines[place].partition(": ")
        if colon:
            lines[place] = f"{name}: {rng.choice(('&a ', '&b ', '*a #', '*b #', '*c #', '&a *a #', '<<: *a #'))}{rest}"
    return "".join(lines)


def _as_text(rng: Random) -> str:
    text = _file(rng)
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
