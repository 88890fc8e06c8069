"""The scenarios that the specification of documents names: each is played by a test that can be found by its name."""

from __future__ import annotations

import ast

import pytest

from support.repository import ROOT

SCENARIOS = {
    "envelope generation": "authoring/document/test_envelope.py::test_the_same_contract_gives_the_same_envelope",
    "slot validation": "authoring/document/test_body_checks.py::test_edges_stay_in_their_slot",
    "merge determinism": "authoring/document/test_compiler.py::test_the_hash_does_not_depend_on_order_machine_or_seed",
    "advancement": "app/documents/test_calls.py::test_an_invoice_is_created_edited_submitted_and_approved",
    "approval by reference and snapshot": "machine/test_documents.py::test_an_approval_is_pinned_to_the_version_that_was_seen",
    "branching evidence": "app/documents/test_steps.py::test_one_way_is_taken_and_the_history_says_why",
    "receipt dedup": "app/documents/test_calls.py::test_a_repeated_call_is_carried_out_once",
    "version pin": "app/documents/test_calls.py::test_a_document_stays_with_the_version_of_its_workflow",
    "edit windows": "machine/test_documents.py::test_the_strictest_window_counts",
    "outbox dedup with source": "app/test_inbox.py::test_a_command_id_counts_once_over_calls_inbox_and_messages",
    "restart after completion": "app/documents/test_rows.py::test_a_round_that_ended_stands_in_nobodys_way",
    "amendment": "app/documents/test_calls.py::test_an_edit_of_what_others_decide_on_makes_an_amendment",
    "status regressions": "store/test_guards.py::test_a_step_that_has_ended_never_moves",
    "stale compiler": "app/documents/test_bodies.py::test_another_compiler_begins_no_document_until_it_has_compiled_again",
    "composite keys": "store/test_guards.py::test_an_id_belongs_to_one_document_of_its_type",
    "handler atomicity of a call": "app/documents/test_calls.py::test_the_handler_of_an_action_writes_in_the_same_transaction",
    "handler atomicity of a step": "app/documents/test_steps.py::test_a_handler_and_its_change_are_one_commit_and_it_may_be_tried_again",
    "projection rebuild": "app/documents/test_invariants.py::test_a_repair_makes_everything_again_from_the_history",
    "join dedup": "app/documents/test_rows.py::test_a_join_goes_on_with_the_last_branch_in_the_same_commit",
    "trace propagation": "app/documents/test_outward.py::test_one_trace_and_one_name_lead_from_the_call_to_the_receiver",
}


@pytest.mark.row("E-895")
def test_every_scenario_of_documents_has_its_test() -> None:
    """A scenario that nobody plays any more is missed here, whatever its test was called."""
    for scenario, place in SCENARIOS.items():
        file, _, name = place.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, scenario
