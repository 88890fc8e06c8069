"""Problem details: every error of the engine has a status, a stable code and a remedy, and what nobody foresaw tells nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from standfast import errors as e
from standfast.http.wire.problems import (
    REMEDIES,
    STATUSES,
    EdgeCode,
    EdgeError,
    edge_status,
    headers_of,
    problem_of,
)
from support.repository import load_generator

SAMPLES: dict[type[e.StandfastError], e.StandfastError] = {
    e.DefinitionError: e.DefinitionError("order", [e.Diagnostic(code="x", message="wrong", position="steps.a")]),
    e.ExpressionError: e.ExpressionError("wrong", reason="syntax"),
    e.RejectedError: e.RejectedError(reason="already_terminal", message="it has ended"),
    e.ForbiddenError: e.ForbiddenError(reason="not_allowed", message="'ann' may not"),
    e.CommandError: e.CommandError("secret", decider="x"),
    e.WorkflowFailedError: e.WorkflowFailedError(instance="i", status="failed", reason="r"),
    e.NotFoundError: e.NotFoundError("run", "x"),
    e.ReusedIdError: e.ReusedIdError("k"),
    e.UnknownEventError: e.UnknownEventError(decider="secret", event_type="x", version=1),
}


def sample(kind: type[e.StandfastError]) -> e.StandfastError:
    """An error of a kind."""
    return SAMPLES.get(kind) or kind("secret")  # type: ignore[call-arg, unused-ignore]


@pytest.mark.row("G-40", "P-155")
def test_every_error_has_a_status_and_a_remedy() -> None:
    """The map is total over the tree of errors, and nothing is in it that is no error."""
    kinds = load_generator().error_classes()
    assert {each.__name__ for each in kinds} == {each.__name__ for each in STATUSES}
    assert {each.code for each in kinds} == set(REMEDIES)


@pytest.mark.parametrize("kind", STATUSES, ids=lambda kind: kind.__name__)
def test_a_problem_says_what_it_is(kind: type[e.StandfastError]) -> None:
    """Status, code, remedy and trace id are there; a failure of the server says nothing of its inside."""
    error = sample(kind)
    told = problem_of(error, trace_id="t1")
    assert (told.status, told.trace_id, bool(told.remedy), told.detail) == (STATUSES[kind], "t1", True, told.message)
    assert told.code == getattr(error, "reason", "") if kind in {e.RejectedError, e.ForbiddenError} else error.code
    assert told.type == f"urn:standfast:problem:{told.code}"
    assert told.retryable == error.retryable
    if told.status == 500:
        assert "secret" not in told.detail
    assert ("retry-after" in headers_of(error)) == error.retryable


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("not_started", 404),
        ("invalid_form", 422),
        ("INVALID_TRANSITION", 422),
        ("WORKFLOW_NOT_ACTIVE", 409),
        ("claimed", 409),
    ],
)
@pytest.mark.row("P-156", "P-065", "P-068")
def test_refusals_tell_what_is_wrong_from_what_is_too_late(reason: str, status: int) -> None:
    """A refusal about what was asked is 422, one about how things stand is 409, and of what was never started 404."""
    assert problem_of(e.RejectedError(reason=reason, message="no"), trace_id="").status == status


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("VALIDATION_ERROR", "form"),
        ("invalid_form", "form"),
        ("INVALID_TRANSITION", "`choices`"),
        ("no_transition", "`choices`"),
        ("IDEMPOTENCY_CONFLICT", "a key of its own"),
        ("dead_letters", "/ui/workflows/{id}/resume"),
    ],
)
def test_a_refusal_says_what_to_do_about_it(reason: str, word: str) -> None:
    """Where there is more to do than to look again, the remedy names it."""
    assert word in problem_of(e.RejectedError(reason=reason, message="no"), trace_id="").remedy


def test_what_nobody_foresaw_tells_nothing() -> None:
    """An exception of the server's own is told as such, without its words."""
    told = problem_of(ValueError("the password is 1234"), trace_id="t")
    assert (told.status, told.code) == (500, "internal_error")
    assert "1234" not in msgspec.json.encode(told).decode()


def test_nobody_is_told_where_the_database_is() -> None:
    """Whoever comes while it is away is told to come again, and learns no address from it: strangers come too."""
    away = e.StoreUnavailableError("postgresql://db.internal:5432/flows cannot be used now")
    told = problem_of(away, trace_id="")
    assert (told.status, told.code, told.retryable, headers_of(away)) == (
        503, "store_unavailable", True, {"retry-after": "1"},
    )  # fmt: skip
    assert "db.internal" not in msgspec.json.encode(told).decode()


@pytest.mark.parametrize("code", EdgeCode)
def test_every_refusal_of_the_edge_is_a_problem(code: EdgeCode) -> None:
    """Each has a status of its kind and a remedy; 401 has its challenge."""
    error = EdgeError(code, "so it is", headers={"x": "y"})
    told = problem_of(error, trace_id="")
    assert (told.status, told.code, told.detail) == (edge_status(code), code.value, "so it is")
    assert headers_of(error)["x"] == "y"
    assert ("www-authenticate" in headers_of(error)) == (code is EdgeCode.UNAUTHENTICATED)


@pytest.mark.row("P-155")
def test_processes_are_told_of_in_their_own_words() -> None:
    """The same error has the code of the specification where a process is asked for."""
    cases: list[tuple[Any, str]] = [
        (e.NotFoundError("process", "x"), "NOT_FOUND"),
        (e.ForbiddenError(reason="not_allowed", message="no"), "FORBIDDEN"),
        (e.PayloadError("no"), "VALIDATION_ERROR"),
        (EdgeError(EdgeCode.MALFORMED, "no"), "VALIDATION_ERROR"),
        (EdgeError(EdgeCode.CHANGED_MEANWHILE, "no"), "VERSION_CONFLICT"),
        (e.RejectedError(reason="WORKFLOW_NOT_ACTIVE", message="no"), "WORKFLOW_NOT_ACTIVE"),
    ]
    assert [problem_of(error, trace_id="", is_of_processes=True).code for error, _ in cases] == [
        code for _, code in cases
    ]
