"""The processes that come with the package, walked to each of their ends, on both stores."""

from __future__ import annotations

from datetime import timedelta
from importlib import resources

import pytest

from standfast import load_processes
from standfast.testing import ManualEngine
from support.engines import Place

Act = tuple[str, dict[str, object]] | timedelta
"""An event with its input, a signal if it has a dot in its name; or time that goes by."""

DAY = timedelta(days=1)
EVIDENCE: Act = ("evidence.received", {})


def opened(engine: ManualEngine, name: str, answers: dict[str, object]) -> str:
    """Publish a template, with a backend that gives these answers; what it is started by."""
    text = (resources.files("standfast") / "cli/develop/samples" / f"{name}.yaml").read_text(encoding="utf-8")
    (definition,) = load_processes(text)
    engine.register(definition)
    for node in definition.graph.nodes.values():
        handler = getattr(getattr(node.op, "work", None), "handler", "")
        if handler:
            engine.handle(handler, _answering(handler, answers))
    return definition.name


def _answering(handler: str, answers: dict[str, object]) -> object:
    def answer(data: dict[str, object]) -> object:
        del data
        found = answers.get(handler, {})
        if isinstance(found, Exception):
            raise found
        return found

    return answer


def walked(engine: ManualEngine, name: str, given: dict[str, object], acts: list[Act]) -> tuple[str, str]:
    """Where acts lead: the status, and the outcome or else the step."""
    instance = engine.processes.start(name, given).id
    engine.drain()
    for act in acts:
        if isinstance(act, timedelta):
            engine.advance(act)
        elif "." in act[0]:
            engine.run(instance).signal(act[0], act[1])
        else:
            engine.processes.advance(instance, act[0], act[1])
        engine.drain()
    seen = engine.processes.get(instance).instance
    assert engine.instances.verify(instance).is_sound
    return seen.status, seen.outcome or seen.current_step


PERSON: dict[str, object] = {"full_name": "Ann", "email": "ann@example.org"}
TRIAGE: Act = ("investigate", {"priority": "high"})
TOTAL: dict[str, object] = {"settlement.compute": {"total_cents": 5, "payments": 1}}


@pytest.mark.row("P-001", "P-004", "P-008", "P-013", "P-014", "P-015")
@pytest.mark.parametrize(
    ("name", "answers", "acts", "stands"),
    [
        ("order_approval", {}, [("approved", {"approval_notes": "fine"})], ("completed", "approved")),
        ("order_approval", {}, [("rejected", {})], ("completed", "rejected")),
        ("order_approval", {}, [4 * DAY], ("completed", "expired")),
        ("dispute_resolution", {}, [TRIAGE, EVIDENCE, ("approved", {"refund_cents": 5})], ("completed", "refunded")),
        ("dispute_resolution", {}, [TRIAGE, EVIDENCE, ("more_evidence", {}), EVIDENCE, ("rejected", {})], ("completed", "upheld")),
        ("dispute_resolution", {}, [TRIAGE, 15 * DAY, 6 * DAY, ("rejected", {})], ("completed", "upheld")),
        ("dispute_resolution", {}, [46 * DAY], ("completed", "lapsed")),
        (
            "dispute_resolution",
            {"payments.refund": ValueError("no")},
            [TRIAGE, EVIDENCE, ("approved", {"refund_cents": 5}), DAY, ("done", {})],
            ("completed", "refunded"),
        ),
        ("user_onboarding", {"people.verify": {"risk": "low"}}, [("submitted", PERSON), DAY], ("completed", "onboarded")),
        ("user_onboarding", {"people.verify": {"risk": "high"}}, [("submitted", PERSON), ("rejected", {})], ("completed", "rejected")),
        (
            "user_onboarding",
            {"people.verify": {"risk": "high"}},
            [("submitted", PERSON), ("corrected", {}), ("submitted", PERSON), ("approved", {}), DAY],
            ("completed", "onboarded"),
        ),
        ("user_onboarding", {}, [31 * DAY], ("completed", "abandoned")),
        ("settlement", TOTAL, [("approved", {}), ("bank.settled", {})], ("completed", "settled")),
        ("settlement", TOTAL, [("rejected", {})], ("completed", "declined")),
        ("settlement", TOTAL, [("approved", {}), 6 * DAY, ("resolved", {})], ("completed", "settled")),
        ("settlement", TOTAL, [3 * DAY], ("completed", "overdue")),
        ("expense_approval", {}, [("approved", {}), ("approved", {})], ("completed", "reimbursed")),
        ("expense_approval", {}, [("returned", {}), ("submitted", {"total_cents": 5}), ("approved", {})], ("completed", "reimbursed")),
        ("expense_approval", {}, [("approved", {}), ("rejected", {})], ("completed", "declined")),
        ("expense_approval", {}, [22 * DAY], ("completed", "expired")),
    ],
)  # fmt: skip
def test_a_template_leads_to_its_ends(
    place: Place, *, name: str, answers: dict[str, object], acts: list[Act], stands: tuple[str, str]
) -> None:
    """What it is for, what is turned down, and what nobody sees to in time."""
    engine = place.engine()
    given: dict[str, object] = {
        "order_id": "o-1",
        "customer_email": "ann@example.org",
        "case_id": "c-1",
        "charge_id": "ch-1",
        "batch_id": "b-1",
        "report_id": "r-1",
        "total_cents": 90_000,
    }
    assert walked(engine, opened(engine, name, answers), given, acts) == stands
