"""What a notice of a saga tells whom."""

from __future__ import annotations

from collections.abc import Sequence

from standfast.features.sagas.builder_state import BuilderState
from standfast.features.sagas.expressions import text_of
from standfast.graph.model import NotificationOp, Stored
from standfast.graph.nodes.notification import BODY, HTML, ROLE, SUBJECT, TO


def notice(
    parts: BuilderState,
    name: str,
    *,
    to: str | Sequence[str],
    subject: str,
    body: str,
    html: str,
    channel: str | Sequence[str],
    wait: bool,
) -> NotificationOp:
    """What the node of a notice does; what is wrong with it becomes a finding."""
    recipients, channels = texts(to), texts(channel)
    written = {SUBJECT: subject, BODY: body, HTML: html}
    written |= {f"{TO}{place}": each.removeprefix(ROLE) for place, each in enumerate(recipients)}
    read = {each: text_of(parts, name, text) for each, text in written.items()}
    templates: dict[str, Stored] = {each: stored for each, (_, stored) in read.items() if stored is not None}
    return NotificationOp(
        to=tuple(
            f"{ROLE if each.startswith(ROLE) else ''}{read[f'{TO}{place}'][0]}" for place, each in enumerate(recipients)
        ),
        subject=read[SUBJECT][0],
        body=read[BODY][0],
        html=read[HTML][0],
        templates=templates,
        channels=channels,
        wait=wait,
    )


def texts(given: str | Sequence[str]) -> tuple[str, ...]:
    """One text, or several."""
    return (given,) if isinstance(given, str) else tuple(str(each) for each in given)
