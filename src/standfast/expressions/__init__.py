"""One typed, auditable expression language in several spellings.

Pure: nothing here reads a clock, a file or an object's attributes. A source is parsed into one tree (`parsing`), checked
against a schema (`checking`), compiled to closures (`compiling`) and evaluated over plain data by one table of type rules
(`values`). What an evaluation read and decided can be told afterwards (`tracing`).
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
