"""A notice tells people something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.value_checks import name_findings

ROLE: Final = "role:"
"""What a recipient begins with that is a role; any other is a user, or an address if it has an @."""
SUBJECT, BODY, HTML, TO = "subject", "body", "html", "to."
"""The names of its texts; those of recipients end with their place."""
MOST_RECIPIENTS = 100
LONGEST_TEXT = 20_000
"""Characters of a text as its author wrote it."""


class NotificationOp(NodeOp, frozen=True, kw_only=True, tag="notify"):
    """Tells people something; the run does not wait until they are told, unless it is to."""

    to: tuple[str, ...]
    """Users, addresses with an @, and roles as `role:finance`."""
    subject: str
    body: str = ""
    html: str = ""
    """The body for channels that show HTML, such as e-mail; values of the data are escaped. Empty means the body as it is."""
    templates: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets one of its own
    """The stored forms of those of these texts that have holes, by their names."""
    channels: tuple[str, ...] = ("in_app",)
    wait: bool = False
    """Whether the step ends once everybody is told, and fails if somebody cannot be."""

    word: ClassVar[str] = "notify"
    shape: ClassVar[NodeShape] = NodeShape(('[\\"', '"\\]'), "shape=note, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """By the world, if that is waited for."""
        return "wait" if self.wait else "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is sent; it could not be, which only one that is waited for hears of."""
        return frozenset({OK, ERROR}) if self.wait else frozenset({OK})

    @property
    def detail(self) -> str:
        """What is told, and to whom."""
        return ", ".join((self.subject, *self.to))

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The texts with holes."""
        for name, stored in self.templates.items():
            yield NodeExpression(name, f"{name!r} of {node!r}", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with whom it tells what, and how."""
        if not 1 <= len(self.to) <= MOST_RECIPIENTS:
            message = f"{node!r} tells {len(self.to)} recipients; name from 1 to {MOST_RECIPIENTS}, or a role for many"
            yield Diagnostic("recipients", message, node)
        for each in self.to:
            yield from name_findings(node, "recipients", f"a recipient of {node!r}", str(each).removeprefix(ROLE))
        if not self.channels:
            yield Diagnostic("channel", f"{node!r} has no channel; name at least one, such as 'in_app'", node)
        for channel in self.channels:
            yield from name_findings(node, "channel", f"a channel of {node!r}", channel)
        yield from name_findings(node, "subject", f"the subject of {node!r}", self.subject)
        for name, text in ((BODY, self.body), (HTML, self.html)):
            if len(text) > LONGEST_TEXT:
                message = f"the {name} of {node!r} has {len(text)} characters; use at most {LONGEST_TEXT}"
                yield Diagnostic("body", message, node)
        known = {SUBJECT, BODY, HTML, *(f"{TO}{place}" for place in range(len(self.to)))}
        for name in sorted(self.templates.keys() - known):
            yield Diagnostic(
                "expression", f"{node!r} has a template for {name!r}, which is none of its texts; remove it", node
            )
