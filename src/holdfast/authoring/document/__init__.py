"""Documents: contracts that say what a document is, envelopes that follow from them, patches by which organisations fill their slots."""

from holdfast.authoring.document.body_checks import body_schema, check_body, read_body
from holdfast.authoring.document.body_format import Body
from holdfast.authoring.document.compiler import compile_effective
from holdfast.authoring.document.contract_format import Contract
from holdfast.authoring.document.contract_loading import contract_hash, contract_schema, read_contract
from holdfast.authoring.document.effective import Effective, effective_data, read_effective
from holdfast.authoring.document.envelope import Envelope, generate_envelope, outdated_warning, version_problem
from holdfast.authoring.document.library import contract_names, ready_contract
from holdfast.authoring.document.problems import Problem
from holdfast.authoring.document.versions import COMPILER_VERSION, advance_problem, repin_problem, start_problem

__all__ = [
    "COMPILER_VERSION",
    "Body",
    "Contract",
    "Effective",
    "Envelope",
    "Problem",
    "advance_problem",
    "body_schema",
    "check_body",
    "compile_effective",
    "contract_hash",
    "contract_names",
    "contract_schema",
    "effective_data",
    "generate_envelope",
    "outdated_warning",
    "read_body",
    "read_contract",
    "read_effective",
    "ready_contract",
    "repin_problem",
    "start_problem",
    "version_problem",
]
