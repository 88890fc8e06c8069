"""Stable codes of `ExpressionError`. A test checks that the reference page lists all of them."""

from __future__ import annotations

from enum import StrEnum


class ExpressionErrorCode(StrEnum):
    """Reason of an error. Programs may rely on the value; the message is for people."""

    SYNTAX = "syntax"
    FORBIDDEN_CHARACTER = "forbidden_character"
    BAD_STRING = "bad_string"
    BAD_NUMBER = "bad_number"
    BAD_NAME = "bad_name"
    BAD_CONDITION = "bad_condition"
    BAD_TEMPLATE = "bad_template"
    BAD_FORM = "bad_form"
    BAD_SCHEMA = "bad_schema"
    UNKNOWN_FUNCTION = "unknown_function"
    UNKNOWN_OPERATOR = "unknown_operator"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    TOO_MANY_DEREFERENCES = "too_many_dereferences"
    LIST_TOO_LONG = "list_too_long"
    UNKNOWN_NAME = "unknown_name"
    UNKNOWN_VALUE = "unknown_value"
    NOT_MINOR_UNITS = "not_minor_units"
    TYPE_MISMATCH = "type_mismatch"
    NOT_BOOLEAN = "not_boolean"
    NULL_ORDER = "null_order"
    MISSING_VALUE = "missing_value"
    NOT_AN_OBJECT = "not_an_object"
    NOT_A_NUMBER = "not_a_number"
    BAD_TIME = "bad_time"
    NO_TIME_ZONE = "no_time_zone"
    UNSUPPORTED_TYPE = "unsupported_type"
