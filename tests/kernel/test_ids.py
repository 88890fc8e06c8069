"""Identities tell when they were made, sort by it, and can be derived without randomness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.orders import NOON, ORDER, moment
from standfast.kernel.ids import born_at, derive_uuid7, effect_key, make_uuid7
from standfast.kernel.moment import Moment
from support.untimed import untimed

instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
randomness = st.integers(0, 2**74 - 1)


@untimed
@given(instants, randomness)
def test_an_id_is_a_uuid_of_version_7(at: datetime, chance: int) -> None:
    """Every id carries the version and the variant of RFC 9562."""
    identity = make_uuid7(at, chance)
    assert (identity.version, identity.variant) == (7, "specified in RFC 4122")


@untimed
@given(instants, randomness)
def test_an_id_tells_its_birth(at: datetime, chance: int) -> None:
    """The instant of birth can be read from an id, to the millisecond."""
    assert timedelta(0) <= at - born_at(make_uuid7(at, chance)) < timedelta(milliseconds=1)


@untimed
@given(instants, randomness, randomness)
def test_later_ids_sort_later(at: datetime, first: int, second: int) -> None:
    """Ids sort by their time of birth, whatever their random part."""
    assert make_uuid7(at, first) < make_uuid7(at + timedelta(milliseconds=1), second)


@untimed
@given(randomness, randomness)
def test_randomness_is_used_whole(first: int, second: int) -> None:
    """All 74 bits count: two ids of one millisecond are equal only if their randomness is."""
    assert (make_uuid7(NOON, first) == make_uuid7(NOON, second)) == (first == second)


def test_a_known_id_stays_the_same() -> None:
    """The way from an instant and randomness to an id never changes: ids are stored for years."""
    assert make_uuid7(NOON, 1) == UUID("019d43c3-d200-7000-8000-000000000001")


@pytest.mark.row("D-014")
def test_a_derived_id_is_repeatable() -> None:
    """A decision that names something gets the same id each time it is made on the same state."""
    assert derive_uuid7(NOON, "a", 1) == derive_uuid7(NOON, "a", 1)
    assert moment().derive_id("child") == moment().derive_id("child")


def test_a_derived_id_differs_with_all_it_comes_from() -> None:
    """Another part, another version or another instant gives another id."""
    later = Moment(now=NOON + timedelta(seconds=1), instance=ORDER)
    ids = [moment().derive_id(), moment().derive_id("a"), moment().derive_id("a", "b"), moment(1).derive_id()]
    assert len({*ids, later.derive_id()}) == 5


def test_derived_ids_tell_their_birth() -> None:
    """A derived id is an id like any other."""
    assert born_at(moment().derive_id("child")) == NOON


@pytest.mark.row("D-054", "ED-01")
def test_effect_keys_name_one_effect() -> None:
    """The idempotency key is equal over all attempts of an effect and different from every other effect's."""
    other = make_uuid7(NOON, 7)
    assert effect_key(ORDER, 1) == effect_key(ORDER, 1)
    assert len({effect_key(ORDER, 1), effect_key(ORDER, 2), effect_key(ORDER, 11), effect_key(other, 1)}) == 4
