"""The pages about the format and the calls of processes name all that a file can say, and every code that a call is refused with."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from standfast import ProcessCode
from standfast.features.process_files import format as f
from standfast.features.processes.views import StepType
from support.repository import ROOT

PAGES = ("docs/reference/process-format.md", "docs/reference/process-calls.md")
PAGE = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in PAGES)
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))
PARTS = (
    f.Domain,
    f.Workflow,
    f.CapabilityRules,
    f.TriggerSpec,
    f.TransitionSpec,
    f.Assignee,
    f.RetrySpec,
    f.OperationSpec,
    f.AwaitedSpec,
)


@pytest.mark.parametrize("part", [*PARTS, *get_args(f.Step)], ids=lambda part: part.__name__)
def test_every_field_is_on_the_page(part: type[msgspec.Struct]) -> None:
    """Whoever looks a field up finds it."""
    missing = {each.encode_name for each in msgspec.structs.fields(part)} - NAMED
    assert not missing


def test_every_type_and_code_is_on_the_page() -> None:
    """Types of steps, and the codes of refusals."""
    assert {*get_args(StepType), *map(str, ProcessCode)} <= NAMED
