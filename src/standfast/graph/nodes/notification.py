"""Notification nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.value_checks import name_findings

ROLE: Final = "role:"
"""Prefix of a recipient that is a role. Others are users, or addresses if they contain an @."""
SUBJECT, BODY, HTML, TO = "subject", "body", "html", "to."
"""Names of its texts. Those of recipients end with their index."""
MOST_RECIPIENTS = 100
LONGEST_TEXT = 20_000
"""Maximum length of a text in the definition."""


class NotificationOp(NodeOp, frozen=True, kw_only=True, tag="notify"):
    """Sends notifications. The run waits for the delivery only if `wait` is set."""

    to: tuple[str, ...]
    """Users, addresses with an @, and roles as `role:finance`."""
    subject: str
    body: str = ""
    html: str = ""
    """Body for channels that support HTML, such as e-mail. Values are escaped. Empty means the plain body."""
    templates: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets its own copy
    """Stored templates of the texts with placeholders, by name."""
    channels: tuple[str, ...] = ("in_app",)
    wait: bool = False
    """Whether the step ends after all deliveries, and fails if one fails."""

    word: ClassVar[str] = "notify"
    shape: ClassVar[NodeShape] = NodeShape(('[\\"', '"\\]'), "shape=note, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Waits for the delivery if requested, otherwise pure."""
        return "wait" if self.wait else "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Sent, or failed; only a waiting node can fail."""
        return frozenset({OK, ERROR}) if self.wait else frozenset({OK})

    @property
    def detail(self) -> str:
        """The subject and the recipients."""
        return ", ".join((self.subject, *self.to))

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the templates."""
        for name, stored in self.templates.items():
            yield NodeExpression(name, f"{name!r} of {node!r}", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of recipients, channels and texts."""
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
