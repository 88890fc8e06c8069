"""A directory in a YAML file: what it says, and what is wrong with it, all at once and with places."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from standfast import ConfigurationError, Directory, Principal
from standfast.kernel.people import Absence, Delegation
from standfast.people.directory import Look

SAMPLE = Path(__file__).with_name("people.yaml")


def at(month: int, day: int, *, tenant: str = "default") -> Look:
    """The sample on a day, at noon."""
    with Directory.from_file(SAMPLE).looking(tenant) as rows:
        return Look(rows, datetime(2026, month, day, 12, tzinfo=UTC))


def faults(tmp_path: Path, text: str) -> str:
    """What is said of a file."""
    path = tmp_path / "people.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        Directory.from_file(path)
    assert str(path) in str(refused.value)
    return str(refused.value)


def test_a_file_says_who_there_is() -> None:
    """People come with all that is said of them; what is not said has its default."""
    look = at(3, 1)
    assert look.person("ann") == Principal(
        id="ann", name="Ann Archer", email="ann@example.org", manager="bob", attributes={"cost_centre": 4711}
    )
    assert look.person("bob") == Principal(id="bob")
    assert look.rows.inactive() == ["cat"]
    assert [each.id for each in look.rows.page(after="ann", limit=2)] == ["bob", "cat"]
    assert look.person("eve") is None


def test_nobody_is_there_twice(tmp_path: Path) -> None:
    """Of two that have one name neither is taken."""
    assert "'ann' was given before" in faults(tmp_path, "people: {ann: {roles: [a]}, ann: {roles: [b]}}")


def test_dates_count_the_last_day() -> None:
    """A period of dates begins with its first day, and its last day is in it."""
    seen = [(look.roles(["ann"])["ann"] == {"finance", "auditor"}) for look in (at(1, 1), at(1, 31), at(2, 1))]
    assert seen == [True, True, False]
    assert at(7, 14).absent(["ann"]) == {"ann"}
    assert at(7, 15).absent(["ann"]) == frozenset()
    (delegation,) = at(7, 14).delegations_to("bob")
    begins, ends = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 15, tzinfo=UTC)
    assert delegation == Delegation(
        id=delegation.id,
        giver="ann",
        receiver="bob",
        role="finance",
        definition="expense",
        reason="holidays",
        begins_at=begins,
        ends_at=ends,
    )
    (absence,) = at(7, 14).rows.absences(["ann"], at=datetime(2026, 7, 14, tzinfo=UTC))
    assert absence == Absence(id=absence.id, principal="ann", reason="holidays", begins_at=begins, ends_at=ends)
    assert at(6, 30).delegations_to("bob") == []


def test_a_file_is_about_one_tenant() -> None:
    """Other tenants have nobody."""
    assert at(3, 1, tenant="other").is_empty()
    assert not at(3, 1).is_empty()


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Each with its place, and a mistyped key with the one that was meant."""
    told = faults(
        tmp_path,
        """
        peopel: {}
        people:
          ann: {mnager: bob, kind: robot, active: maybe, roles: finance, email: ann}
          7: {}
          "": {}
          bob: {roles: [{role: x, begins: soon}], attributes: []}
        delegations:
          - {from: ann, too: bob}
        absences: {who: ann}
        """,
    )
    for each in (
        "unknown key 'peopel'; did you mean 'people'?",
        "people.ann: unknown key 'mnager'; did you mean 'manager'?",
        "people.ann.kind: it is `user` or `service`, not 'robot'",
        "people.ann.email: 'ann' is no address that mail can be sent to",
        "people.ann.active",
        "people.ann.roles: give a list of roles",
        "people: an id is text, in quotes if need be, not 7",
        "people: an id is text, in quotes if need be, not ''",
        "people.bob.roles[0].begins: give a date",
        "people.bob.attributes",
        "delegations[0]: unknown key 'too'; did you mean 'to'?",
        "delegations[0].to: it must be said",
        "absences: give a list",
    ):
        assert each in told


def test_people_must_fit_together(tmp_path: Path) -> None:
    """Circles, unknown people and periods that end before they begin are told by name."""
    told = faults(
        tmp_path,
        """
        people:
          ann: {manager: bob}
          bob: {manager: cat}
          cat: {manager: ann}
          dan: {manager: boob}
        delegations:
          - {from: ann, to: ann}
          - {from: ann, to: bob}
          - {from: bob, to: ann}
          - {from: eve, to: ann}
        absences:
          - {who: eve}
        """,
    )
    for each in (
        "people.ann.manager: they would be their own manager: ann → bob → cat → ann",
        "people.dan.manager: nobody here is called 'boob'; did you mean 'bob'?",
        "delegations[0]: nobody can stand in for themselves",
        "delegations[2]: it leads back to its giver: bob → ann → bob",
        "delegations[3].from: nobody here is called 'eve'",
        "absences[0].who: nobody here is called 'eve'",
    ):
        assert each in told
    ends = "people: {ann: }\nabsences: [{who: ann, begins: 2026-02-02, ends: 2026-02-01}]"
    assert "absences[0].ends: the period ends before it begins" in faults(tmp_path, ends)


@pytest.mark.parametrize("text", ["people: [", "!!python/object/apply:os.getcwd []", "- a", "people: 7"])
def test_what_is_no_directory_is_refused(tmp_path: Path, text: str) -> None:
    """Neither YAML of another shape nor YAML that would run something is taken."""
    assert faults(tmp_path, text)


def test_a_file_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(ConfigurationError, match=r"gone\.yaml"):
        Directory.from_file(tmp_path / "gone.yaml")
