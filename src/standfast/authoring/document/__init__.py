"""Documents: contracts that say what a document is, envelopes that follow from them, patches by which organisations fill their slots."""

from standfast.authoring.document.body_checks import body_schema, read_body
from standfast.authoring.document.body_format import Body
from standfast.authoring.document.compiler import compile_effective
from standfast.authoring.document.contract_changes import ContractChange, contract_changes
from standfast.authoring.document.contract_format import Contract
from standfast.authoring.document.contract_loading import contract_hash, contract_schema, read_contract
from standfast.authoring.document.differences import Difference, diff
from standfast.authoring.document.document_diff import FieldChange, document_diff, document_diff_text
from standfast.authoring.document.dry_run import dry_run
from standfast.authoring.document.effective import Effective, effective_data, read_effective
from standfast.authoring.document.envelope import Envelope, generate_envelope, outdated_warning, version_problem
from standfast.authoring.document.exchange import export_yaml
from standfast.authoring.document.graph import graph_of
from standfast.authoring.document.library import contract_names, ready_contract
from standfast.authoring.document.picture import mermaid_of
from standfast.authoring.document.problems import BodyDiagnostic
from standfast.authoring.document.scenarios import ScenarioResult, run_scenario
from standfast.authoring.document.templates import BodyTemplateFile, instantiate, read_template, template_names
from standfast.authoring.document.validator import check_body, rebased
from standfast.authoring.document.versions import (
    COMPILER_VERSION,
    advance_problem,
    is_older,
    repin_problem,
    start_problem,
)
from standfast.authoring.document.ways import machine_edges

__all__ = [
    "COMPILER_VERSION",
    "Body",
    "BodyDiagnostic",
    "BodyTemplateFile",
    "Contract",
    "ContractChange",
    "Difference",
    "Effective",
    "Envelope",
    "FieldChange",
    "ScenarioResult",
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
