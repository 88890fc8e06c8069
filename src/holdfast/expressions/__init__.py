"""One typed, auditable expression language in several spellings.

Pure: nothing here reads a clock, a file or an object's attributes. A source is parsed into one tree (`parsing`), checked
against a schema (`checking`), compiled to closures (`compiling`) and evaluated over plain data by one table of type rules
(`values`). What an evaluation read and decided can be told afterwards (`tracing`).
"""

from __future__ import annotations

from holdfast.expressions.expression import Expression, parse
from holdfast.expressions.fields import FieldMapping, parse_fields
from holdfast.expressions.limits import Limits
from holdfast.expressions.options import NAMESPACES, Options, Spelling
from holdfast.expressions.pointing import point
from holdfast.expressions.reasons import Reason
from holdfast.expressions.schemas import Type, schema_type
from holdfast.expressions.tracing import Explanation, Failure

__all__ = [
    "NAMESPACES",
    "Explanation",
    "Expression",
    "Failure",
    "FieldMapping",
    "Limits",
    "Options",
    "Reason",
    "Spelling",
    "Type",
    "parse",
    "parse_fields",
    "point",
    "schema_type",
]
