"""What is wrong with contracts and patches: a diagnostic that also names slot, node and edge, so that an editor can mark the culprit."""

from __future__ import annotations

from collections.abc import Iterable

from standfast.errors import Diagnostic


class BodyDiagnostic(Diagnostic, frozen=True, kw_only=True, omit_defaults=True):
    """One finding about patches, or about what they compile to."""

    slot: str = ""
    """The slot whose patch it is about; empty if it concerns the whole."""
    node: str = ""
    edge: str = ""


def ordered(problems: Iterable[BodyDiagnostic]) -> list[BodyDiagnostic]:
    """Each problem once, in an order that does not depend on that of the patches."""
    return sorted(dict.fromkeys(problems), key=lambda each: (each.slot, each.node, each.edge, each.code, each.message))
