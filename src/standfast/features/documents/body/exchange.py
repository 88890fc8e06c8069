"""Contracts and bodies as files to be kept in git and taken elsewhere: YAML that reads back as what it was, with a hash over what it says."""

from __future__ import annotations

from typing import Final

import msgspec
import yaml

from standfast.features.documents.body.format import Body
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.loading import content_hash
from standfast.graph.source_files.scalars import value_of

_WIDTH: Final = 120
_BREAKS: Final = frozenset("\x85\u2028\u2029")
"""What YAML takes for the end of a line where it is not quoted."""


def export_yaml(part: Contract | Body) -> str:
    """A contract or a body as YAML, with its hash: what is changed afterwards is refused until the hash is removed."""
    plain = msgspec.to_builtins(part)
    plain["hash"] = content_hash(part)
    return plain_yaml(plain)


def plain_yaml(plain: object) -> str:
    """Plain data as YAML, as the reader of files reads it back."""
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes what the reader of files reads back: a text that would be taken for something else is quoted."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - whatever it is
        """Write everything out, so that every place can be changed by itself."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    is_plain = value_of(text) == text and not isinstance(value_of(text), int | float) and _BREAKS.isdisjoint(text)
    style = None if is_plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
