"""Service accounts that steps act as: known to the directory when a body is published, and active when a step acts."""

from __future__ import annotations

import pytest

from app.documents.blueprints import BOTH, of, opened
from standfast import DefinitionError
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine
from support.engines import Place

BODY = """
base: {{entity_type: invoice, envelope_version: 1}}
slots:
  "slot:approved_to_active":
    nodes: [{{id: post, type: action, action: invoice.post, run_as: "service_account:{account}"}}]
"""


def organisation(engine: ManualEngine, *services: str) -> Calls:
    """One with a person and service accounts in its directory."""
    calls = engine.as_tenant("acme")
    calls.directory.put("fin")
    for each in services:
        calls.directory.put(each, kind="service")
    return calls


@pytest.mark.row("E-574", "EH-07")
def test_an_account_that_the_directory_does_not_know_is_refused_when_published(place: Place) -> None:
    """Where the directory knows service accounts, a body names one of these; a person is none, and one that is known is published."""
    engine = opened(place)
    calls = organisation(engine, "svc-gl")
    for account, told in (("svc-lg", "did you mean 'svc-gl'"), ("fin", "as a person")):
        draft = of(engine, BOTH).bodies.save(BODY.format(account=account))
        assert [(each.code, each.node) for each in draft.problems] == [
            ("unknown_service_account", "usr:slot:approved_to_active:post")
        ]
        assert told in draft.problems[0].message
        with pytest.raises(DefinitionError, match="service account"):
            of(engine, BOTH).bodies.publish(draft.id)
    draft = of(engine, BOTH).bodies.save(BODY.format(account="svc-gl"))
    assert (draft.problems, draft.warnings) == ([], [])
    of(engine, BOTH).bodies.publish(draft.id)
    calls.directory.deactivate("svc-gl")
    assert [each.code for each in of(engine, BOTH).bodies.check(BODY.format(account="svc-gl")).warnings] == [
        "inactive_service_account"
    ]


@pytest.mark.row("E-574")
@pytest.mark.parametrize("people", [(), ("fin",)])
def test_where_no_service_account_is_known_any_name_is_taken(people: tuple[str, ...]) -> None:
    """An organisation that keeps no service accounts in the directory names those of its other systems."""
    engine = opened()
    for each in people:
        engine.as_tenant("acme").directory.put(each)
    draft = of(engine, BOTH).bodies.save(BODY.format(account="erp"))
    assert draft.problems == []
    assert of(engine, BOTH).bodies.publish(draft.id).version == 1
