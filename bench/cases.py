"""Every row that the benchmark can print, and what measures it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench.figures import Figures
from bench.rounds import Round
from bench.workloads import (
    append,
    claim,
    compiling,
    documents,
    domain_files,
    human_steps,
    inbox,
    limit,
    long_saga,
    over_http,
    plain_documents,
    processes,
    queue,
    recovery,
    sagas,
    standstill,
    waiting,
)


class Case(NamedTuple):
    """One row."""

    workload: str
    """Chosen by this name on the command line; one name may stand for several rows."""
    name: str
    """How the row is called."""
    prepare: Callable[[Round], None]
    """Brings the fresh database into the state in which measuring begins; not counted, and in another process."""
    measure: Callable[[Round], Figures]
    """What is counted."""


CLAIM_FEW, CLAIM_MANY = "claim 1,000", "claim 1,000,000"
INBOX_FEW, INBOX_MANY = "inbox 1,000", "inbox 100,000"
ADVANCE_FEW, ADVANCE_MANY = "advance alone 1,000", "advance alone 1,000,000"
ALONE = 1_000
"""Advances that one caller makes."""
LISTS_FEW, LISTS_MANY = "lists 1,000", "lists 1,000,000"
MUTATE_FEW, MUTATE_MANY = "mutate alone 1,000", "mutate alone 1,000,000"
DOCUMENTS_FEW, DOCUMENTS_MANY = "documents 1,000", "documents 1,000,000"
HTTP_FEW, HTTP_MANY = "http looks 1,000", "http looks 1,000,000"
MUTATE, PLAIN = "mutate", "mutate in SQLAlchemy"

CASES = (
    Case("limit", "limit", limit.prepare, limit.measure),
    Case("W1", "W1", sagas.prepare, sagas.measure_many),
    Case("W1", "W1 alone", sagas.prepare, sagas.measure_alone),
    Case("W1", "W1 shared", sagas.prepare, processes.measure),
    Case("W2", "W2", sagas.prepare, sagas.measure_fan),
    Case("long", "long saga", sagas.prepare, long_saga.measure),
    Case("compile", "compile 1,000", sagas.prepare, compiling.measure),
    Case("W3", "W3", queue.prepare, queue.measure_bulk),
    Case("W3", "W3 single", queue.prepare, queue.measure_in_turn),
    Case("W3", "W3 together", queue.prepare, queue.measure_together),
    Case("W3", "W3 answered", queue.prepare, queue.measure_answered),
    Case("W4", "W4", append.prepare, append.measure_coroutines),
    Case("W4", "W4 threads", append.prepare, append.measure_threads),
    Case("claim", CLAIM_FEW, claim.preparation(claim.FEW), claim.measure),
    Case("claim", CLAIM_MANY, claim.preparation(claim.MANY), claim.measure),
    Case("recovery", "recovery", recovery.prepare, recovery.measure),
    Case("pause", "pause", waiting.asking, waiting.measure_pause),
    Case("pause", "resume", waiting.held, waiting.measure_resume),
    Case("pause", "paused 1,000", standstill.prepare, standstill.measure),
    Case("approval", "approval", waiting.asking, waiting.measure_approval),
    Case("inbox", INBOX_FEW, inbox.preparation(inbox.FEW), inbox.measure),
    Case("inbox", INBOX_MANY, inbox.preparation(inbox.MANY), inbox.measure),
    Case(
        "advance",
        "advance",
        human_steps.preparation(human_steps.FEW, human_steps.ADVANCES),
        human_steps.measure_advance,
    ),
    Case("advance", ADVANCE_FEW, human_steps.preparation(human_steps.FEW, ALONE), human_steps.measure_advance_in_turn),
    Case(
        "advance", ADVANCE_MANY, human_steps.preparation(human_steps.MANY, ALONE), human_steps.measure_advance_in_turn
    ),
    Case("lists", LISTS_FEW, human_steps.preparation(human_steps.FEW, human_steps.OPEN), human_steps.measure_lists),
    Case("lists", LISTS_MANY, human_steps.preparation(human_steps.MANY, human_steps.OPEN), human_steps.measure_lists),
    Case("domain", "domain 200", sagas.prepare, domain_files.measure_compiling),
    Case("domain", "domain limits", sagas.prepare, domain_files.measure_limits),
    Case("mutate", MUTATE, documents.preparation(documents.FEW, documents.DRAFTS), documents.measure_mutate),
    Case("mutate", PLAIN, plain_documents.prepare, plain_documents.measure),
    Case("mutate", MUTATE_FEW, documents.preparation(documents.FEW, documents.ALONE), documents.measure_mutate_in_turn),
    Case(
        "mutate", MUTATE_MANY, documents.preparation(documents.MANY, documents.ALONE), documents.measure_mutate_in_turn
    ),
    Case("mutate", "mutate refused", documents.preparation(documents.FEW, documents.ALONE), documents.measure_refusals),
    Case(
        "documents",
        "document approval",
        documents.preparation(documents.FEW, documents.INVOICES),
        documents.measure_approval,
    ),
    Case("documents", DOCUMENTS_FEW, documents.preparation(documents.FEW, documents.ALONE), documents.measure_lists),
    Case("documents", DOCUMENTS_MANY, documents.preparation(documents.MANY, documents.ALONE), documents.measure_lists),
    Case("documents", "compile slots", sagas.prepare, documents.measure_compiling),
    Case("http", "http start", over_http.prepare, over_http.measure_start),
    Case("http", HTTP_FEW, over_http.preparation(over_http.FEW), over_http.measure_looks),
    Case("http", HTTP_MANY, over_http.preparation(over_http.MANY), over_http.measure_looks),
    Case("http", "http streams", over_http.prepare, over_http.measure_streams),
    Case("http", "dev", sagas.prepare, over_http.measure_first_answer),
)

WORKLOADS = tuple(dict.fromkeys(case.workload for case in CASES))


def case_named(name: str) -> Case:
    """The case of a row."""
    return next(case for case in CASES if case.name == name)
