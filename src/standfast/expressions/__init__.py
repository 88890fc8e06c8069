"""A typed, auditable expression language with several syntaxes.

Everything is pure: nothing reads a clock, a file or an object's attributes. `syntax` parses a source to one tree,
`model` defines the tree and checks it against a schema, `evaluation` compiles it to closures, and `tracing` records
what an evaluation has read.
"""

from __future__ import annotations

from standfast.expressions.expression import Expression, parse, point
from standfast.expressions.field_mappings import FieldMapping, parse_fields
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.limits import ExpressionLimits
from standfast.expressions.model.options import NAMESPACES, ExpressionOptions, Spelling
from standfast.expressions.model.schema import Type, schema_type
from standfast.expressions.tracing import EvaluationFailure, Explanation

__all__ = [
    "NAMESPACES",
    "EvaluationFailure",
    "Explanation",
    "Expression",
    "ExpressionErrorCode",
    "ExpressionLimits",
    "ExpressionOptions",
    "FieldMapping",
    "Spelling",
    "Type",
    "parse",
    "parse_fields",
    "point",
    "schema_type",
]
