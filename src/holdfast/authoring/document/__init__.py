"""Documents: contracts that say what a document is, envelopes that follow from them, patches by which organisations fill their slots."""

from holdfast.authoring.document.body_checks import body_schema, read_body
from holdfast.authoring.document.body_format import Body
from holdfast.authoring.document.compiler import compile_effective
from holdfast.authoring.document.contract_changes import ContractChange, contract_changes
from holdfast.authoring.document.contract_format import Contract
from holdfast.authoring.document.contract_loading import contract_hash, contract_schema, read_contract
from holdfast.authoring.document.differences import Difference, diff
from holdfast.authoring.document.document_diff import FieldChange, document_diff, document_diff_text
from holdfast.authoring.document.dry_run import dry_run
from holdfast.authoring.document.effective import Effective, effective_data, read_effective
from holdfast.authoring.document.envelope import Envelope, generate_envelope, outdated_warning, version_problem
from holdfast.authoring.document.exchange import export_yaml
from holdfast.authoring.document.graph import graph_of
from holdfast.authoring.document.library import contract_names, ready_contract
from holdfast.authoring.document.picture import mermaid_of
from holdfast.authoring.document.problems import Problem
from holdfast.authoring.document.scenarios import ScenarioResult, run_scenario
from holdfast.authoring.document.templates import Template, instantiate, read_template, template_names
from holdfast.authoring.document.validator import check_body, rebased
from holdfast.authoring.document.versions import (
    COMPILER_VERSION,
    advance_problem,
    is_older,
    repin_problem,
    start_problem,
)
from holdfast.authoring.document.ways import machine_edges

__all__ = [
    "COMPILER_VERSION",
    "Body",
    "Contract",
    "ContractChange",
    "Difference",
    "Effective",
    "Envelope",
    "FieldChange",
    "Problem",
    "ScenarioResult",
    "Template",
    "advance_problem",
    "body_schema",
    "check_body",
    "compile_effective",
    "contract_changes",
    "contract_hash",
    "contract_names",
    "contract_schema",
    "diff",
    "document_diff",
    "document_diff_text",
    "dry_run",
    "effective_data",
    "export_yaml",
    "generate_envelope",
    "graph_of",
    "instantiate",
    "is_older",
    "machine_edges",
    "mermaid_of",
    "outdated_warning",
    "read_body",
    "read_contract",
    "read_effective",
    "read_template",
    "ready_contract",
    "rebased",
    "repin_problem",
    "run_scenario",
    "start_problem",
    "template_names",
    "version_problem",
]
