"""One hash for one value: canonical JSON, and only of values that look the same in every language."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from standfast.errors import PayloadError
from standfast.kernel.codec.canonical import LARGEST_INTEGER, canonical_bytes, canonical_hash
from support.untimed import untimed

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)

VECTORS = [
    ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
    ({"z": {"b": [3, {"y": 1, "x": None}], "a": True}}, b'{"z":{"a":true,"b":[3,{"x":null,"y":1}]}}'),
    ({"€": "ö/\n\x01\u2028"}, '{"€":"ö/\\n\\u0001\u2028"}'.encode()),
    ([1.0, -0.0, 1e15, Decimal("0.10")], b'[1,0,1000000000000000,"0.10"]'),
    ([date(2026, 3, 31), UUID(int=5)], b'["2026-03-31","00000000-0000-0000-0000-000000000005"]'),
    (datetime(2026, 3, 31, 12, tzinfo=UTC), b'"2026-03-31T12:00:00+00:00"'),
    ((), b"[]"),
]


@pytest.mark.row("E-201", "E-204")
@pytest.mark.parametrize(("value", "expected"), VECTORS)
def test_known_answers(value: object, expected: bytes) -> None:
    """Keys are sorted at every depth, nothing is padded, text stays UTF-8; the hash is SHA-256 over just these bytes."""
    assert canonical_bytes(value) == expected
    assert canonical_hash(value) == hashlib.sha256(expected).hexdigest()


@pytest.mark.row("E-201")
@untimed
@given(st.dictionaries(st.text(), plain, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    """Two objects that differ only in the order of their keys hash alike."""
    assert canonical_hash(value) == canonical_hash(dict(reversed(value.items())))


@pytest.mark.row("E-201")
def test_keys_sort_by_utf16_units() -> None:
    """RFC 8785 sorts by UTF-16 code units, so that any verifier of that standard agrees on astral characters."""
    assert canonical_bytes({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


@pytest.mark.row("E-201")
@untimed
@given(plain | st.dictionaries(st.text('abz~_A09\x7f\x00\n"\\/ü\ue000\U00010000'), plain))
def test_the_bytes_are_those_of_the_standard(value: object) -> None:
    """Whoever writes them, a quick way or the careful one, they are what RFC 8785 says."""
    assert canonical_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


@pytest.mark.row("E-202")
def test_null_is_kept_and_unset_is_left_out() -> None:
    """A null is a value; what was never set is not."""
    assert canonical_hash({"a": None}) != canonical_hash({})
    assert canonical_bytes({"a": msgspec.UNSET, "b": 1}) == b'{"b":1}'


@pytest.mark.row("E-203")
@pytest.mark.parametrize("number", [0.1, math.nan, math.inf, -math.inf, 2**53, -(2**53), 1e300])
def test_unstable_numbers_are_refused(number: float) -> None:
    """A number that another language may write differently is not hashed; the message says where it is."""
    with pytest.raises(PayloadError, match=r"\$\.a\[1\] .*\[UNSTABLE_NUMBER\]") as refused:
        canonical_hash({"a": [0, number]})
    assert refused.value.reason == "UNSTABLE_NUMBER"


@pytest.mark.row("E-203")
@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), {1: "a"}, {None: "a"}, "\ud800", {"\ud800": 1}])
def test_values_without_a_form_are_refused(value: object) -> None:
    """What has no canonical JSON form is refused in the engine's own words."""
    with pytest.raises(PayloadError) as refused:
        canonical_hash([value])
    assert refused.value.reason == "UNSTABLE_VALUE"


@pytest.mark.row("E-205")
def test_the_order_of_a_list_matters() -> None:
    """A list is an order."""
    assert canonical_hash([1, 2]) != canonical_hash([2, 1])


@untimed
@given(plain)
def test_the_bytes_tell_the_whole_value(value: object) -> None:
    """Nothing gets lost on the way to the bytes, so different values never share a hash."""
    assert msgspec.json.decode(canonical_bytes(value)) == value


def test_depth_is_refused_in_our_words() -> None:
    """A value that is nested too deep is a bad payload, not a crash."""
    value: object = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(PayloadError, match="too deep"):
        canonical_hash(value)
