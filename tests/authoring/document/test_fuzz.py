"""Random contracts and patches, sound and damaged: refused with diagnostics, or compiled to a graph in which no gate can be avoided, and no life gets past one."""

from __future__ import annotations

import secrets
from collections import Counter
from random import Random

import pytest

from authoring.document.fuzzing import MET, judge

PARTS, CASES = 10, 80


def look_at(name: str) -> str:
    """Judge one case; whoever sees it fail is told by which seed to see it again."""
    try:
        return judge(Random(name))
    except BaseException as error:
        error.add_note(f"seed of the case: {name!r}; judge(Random({name!r})) shows it again")
        raise


@pytest.mark.row("E-192", "E-894", "E-056", "E-921", "E-187", "E-751", "E-553")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_patch_gets_past_a_gate(part: int) -> None:
    """Eighty cases each; a good share compiles, a good share is refused, and the documents that live in them meet gates, branches and losers."""
    before = Counter(MET)
    seen = Counter(look_at(f"{part}/{number}") for number in range(CASES))
    assert seen["compiled"] > CASES // 5
    assert seen["refused body"] > CASES // 5
    met = MET - before
    wanted = ("passed", "ApprovalsApplied", "BranchesMet", "ItemsBegun", "DocumentChanged", "SlotRejected")
    assert all(met[each] for each in wanted), met


FOUND = [f"93e428e84d3b0a3e/{number}" for number in (13282, 27732, 88724, 90558)]
"""Lists were entered again after an edit had voided approvals in them."""


@pytest.mark.row("E-894")
@pytest.mark.parametrize("name", FOUND)
def test_a_case_that_a_campaign_has_found(name: str) -> None:
    """What the judge and the compiler, or the ledger and the machine, once saw differently."""
    look_at(name)


@pytest.mark.row("E-894")
def test_a_case_can_be_seen_again() -> None:
    """The seed that a failure names makes the same case."""
    assert [look_at("again") for _ in range(3)] == [look_at("again")] * 3


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.row("E-192", "E-894")
def test_no_patch_gets_past_a_gate_in_a_long_campaign() -> None:
    """A hundred thousand cases that nobody has seen before."""
    campaign = secrets.token_hex(8)
    for number in range(100_000):
        look_at(f"{campaign}/{number}")
