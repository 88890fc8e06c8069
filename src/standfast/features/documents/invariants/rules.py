"""The rules: what each of them says, and what to do where it does not hold."""

from __future__ import annotations

from typing import Final, NamedTuple

_RESTORE = "restore what was changed from a backup; nothing that is stored tells what it was"
_REPAIR = "`standfast doctor --invariants --repair`, or invariants.repair, makes it again from the history"
_PUBLISH = "publish the workflow again, from its contract and body"


class InvariantRule(NamedTuple):
    """One of them."""

    code: str
    says: str
    remedy: str
    is_mended: bool = False
    """Whether a repair sets it right, as long as the history itself is whole."""


_ALL = (
    InvariantRule("WF-01", "one writer: events follow one another without a gap, and the row counts all of them", _RESTORE),
    InvariantRule("WF-02", "exactly once: a token's visit of a node is one step, and a step ends once", _REPAIR, is_mended=True),
    InvariantRule("WF-03", "approvals are pinned: a gate uses them up once, for the content that was approved", _REPAIR, is_mended=True),
    InvariantRule("WF-04", "a published workflow never changes", _RESTORE),
    InvariantRule("WF-05", "no drift: content changes only where the window of the moment allows it", _RESTORE),
    InvariantRule("WF-06", "what an organisation adds stays within its slots", _PUBLISH),
    InvariantRule("WF-07", "no document without its compiled workflow, which this code can run", "publish that version of the workflow again, as it was"),
    InvariantRule("WF-08", "every status has its node, every transition its gate, and no way leads around a gate", _PUBLISH),
    InvariantRule("WF-09", "every act of the workflow is a step that can be seen", _REPAIR, is_mended=True),
    InvariantRule("WF-10", "work that a step waits for is stored: nothing is only in somebody's memory", "`--repair`, or run.reenqueue, has the step called again, with the same idempotency key", is_mended=True),
    InvariantRule("WF-11", "work is asked for once: no call is stored for a step that has ended", "`--repair`, or invariants.repair, withdraws the call", is_mended=True),
    InvariantRule("WF-12", "the same workflow compiles to the same hash", _PUBLISH),
    InvariantRule("WF-13", "nodes and ways are stored in one order", _PUBLISH),
    InvariantRule("WF-14", "a receipt stands for something that was carried out, and a command is carried out once", _RESTORE),
    InvariantRule("WF-15", "the place is derivable: rows, state and status are what the history says", _REPAIR, is_mended=True),
    InvariantRule("WF-16", "a join goes on once, and nothing goes on where a branch has ended", _REPAIR, is_mended=True),
    InvariantRule("K-01", "one way to write: versions, mutations and the audit are those of the history", _REPAIR, is_mended=True),
    InvariantRule("B4", "an amendment and what it replaces name one another", _RESTORE),
    InvariantRule("T1", "what was sealed stays as it was, and what was redacted as that left it", _RESTORE),
    InvariantRule("E1", "a request that was answered keeps its evidence: what was sent, and what came back", _RESTORE),
    InvariantRule("N1", "the status moves only as the lifecycle allows", _RESTORE),
    InvariantRule("G1", "a gate is a wall: nothing of a slot is under way behind it, and nothing comes back through it", "ask for a transition of the document, or amend it: that ends what was left behind"),
    InvariantRule("G3", "a refusal closes the gate: no document passes while one stands in the slot that no approval behind it has answered", "look at the decision (`documents.audit`), and have the document amended or cancelled where it was refused"),
    InvariantRule("G2", "what was approved stays: behind its gate no step changes what an approval covers", "compare the versions (`documents.diff`), and amend the document so that its content is approved"),
)  # fmt: skip

RULES: Final = {rule.code: rule for rule in _ALL}
"""By their codes."""


class InvariantBreach(NamedTuple):
    """Where a rule does not hold."""

    rule: str
    told: str
    step: int | None = None
    """The step whose call is gone."""
    effect: int | None = None
    """The effect that nobody asked for."""
