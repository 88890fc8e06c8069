"""`If-Match`: what RFC 9110 says of it, or a refusal, the same at every route that understands it."""

from __future__ import annotations

import pytest

from standfast.http.requests.routing import Precondition, condition_of
from standfast.http.wire.problems import EdgeError

READ: dict[str, tuple[list[str], Precondition]] = {
    "none": ([], Precondition()),
    "any": (["*"], Precondition(is_any=True)),
    "any, with blanks": ([" * "], Precondition(is_any=True)),
    "a version": (['"v3"'], Precondition(3)),
    "a tag as it was told": (['"v3.0a1b"'], Precondition(3)),
    "two tags of one version": (['"v3.0a", "v3.0b"'], Precondition(3)),
    "two lines of one version": (['"v3.0a"', '"v3"'], Precondition(3)),
    "one of ours among others": (['"other",W/"v9" , "v3"'], Precondition(3)),
    "a comma in a tag": (['"a,b", "v3"'], Precondition(3)),
    "empty places in the list": ([', "v3",,'], Precondition(3)),
}
REFUSED: dict[str, tuple[list[str], str]] = {
    "a weak tag": (['W/"v3"'], "changed_meanwhile"),
    "a tag of nobody": (['"mine"'], "changed_meanwhile"),
    "a version beyond all": (['"v99999999999"'], "changed_meanwhile"),
    "two versions": (['"v3", "v4"'], "bad_header"),
    "two versions in two lines": (['"v3"', '"v4"'], "bad_header"),
    "no quotes": (["v3"], "bad_header"),
    "half a quote": (['"v3'], "bad_header"),
    "any and a tag": (['*, "v3"'], "bad_header"),
    "nothing": ([""], "bad_header"),
    "no comma": (['"v3" "v4"'], "bad_header"),
    "very long": (['"' + "a" * 5000 + '"'], "bad_header"),
    "many commas": (["," * 1500], "bad_header"),
}


@pytest.mark.parametrize("case", READ)
def test_conditions_are_read_as_they_are_meant(case: str) -> None:
    """Any of the tags may match; weak ones and those of others match nothing; all lines count."""
    given, expected = READ[case]
    assert condition_of(given) == expected


@pytest.mark.parametrize("case", REFUSED)
def test_conditions_that_cannot_be_kept_are_refused(case: str) -> None:
    """Several versions are one too many, because the commit makes sure of one; what is no tag is told so, and matches nothing."""
    given, code = REFUSED[case]
    with pytest.raises(EdgeError) as refused:
        condition_of(given)
    assert refused.value.code == code
