"""Stored definitions: published once, found by name and version, the same for everybody who publishes at once."""

from __future__ import annotations

from functools import partial

import msgspec

from holdfast.store.shapes import SHARED_TENANT, StoredDefinition
from support.desks import Desk
from support.rows import LATER, NOW, OTHER_TENANT, definition
from support.waiting import together


def test_a_definition_is_stored_whole(desk: Desk) -> None:
    """What was published comes back with all it says, and with the time of its publication."""
    sent = definition(source=b"\x00source", compiled=b"\xffcompiled", status="draft")
    stored = desk.definitions.publish(sent, NOW)
    assert stored == msgspec.structs.replace(sent, created_at=NOW)
    assert desk.definitions.get("default", "order", "1") == stored
    assert desk.definitions.get("default", "order", "2") is None
    assert desk.definitions.get("default", "refund", "1") is None


def test_a_version_is_published_once(desk: Desk) -> None:
    """Publishing a version again changes nothing: what stands is returned, so that the caller can compare."""
    first = desk.definitions.publish(definition(), NOW)
    again = desk.definitions.publish(definition(hash="another", compiled=b"other"), LATER)
    assert again == first == desk.definitions.get("default", "order", "1")


def test_versions_are_listed_oldest_first(desk: Desk) -> None:
    """Versions come in the order of publication, names in the order of the alphabet; those of nobody are none."""
    for number, version in enumerate(("10", "9", "beta")):
        desk.definitions.publish(definition(version), NOW.replace(minute=number))
    desk.definitions.publish(definition(name="approval"), NOW)
    assert desk.definitions.versions("default", "order") == ["10", "9", "beta"]
    assert desk.definitions.names("default") == ["approval", "order"]
    assert desk.definitions.versions("default", "refund") == []


def test_definitions_belong_to_their_tenant(desk: Desk) -> None:
    """The same name and version of another tenant, or of the code itself, is another definition."""
    for tenant in ("default", OTHER_TENANT, SHARED_TENANT):
        desk.definitions.publish(definition(tenant=tenant, hash=f"of {tenant}"), NOW)
    for tenant in ("default", OTHER_TENANT, SHARED_TENANT):
        found = desk.definitions.get(tenant, "order", "1")
        assert found is not None
        assert found.hash == f"of {tenant}"
        assert desk.definitions.names(tenant) == ["order"]
    assert desk.definitions.names("stranger") == []


def publish(desk: Desk, version: str, mark: str, stood: list[StoredDefinition]) -> None:
    """Publish a version with a content of one's own."""
    stood.append(desk.definitions.publish(definition(version, hash=mark), NOW))


def test_all_who_publish_at_once_succeed(desk: Desk) -> None:
    """Of several processes that publish one version at the same moment each is told the same one, which stands."""
    everybody = [desk, *(desk.another() for _ in range(3))]
    for version in map(str, range(8)):
        stood: list[StoredDefinition] = []
        together(*(partial(publish, own, version, f"{place}", stood) for place, own in enumerate(everybody)))
        assert len(stood) == len(everybody)
        assert {each.hash for each in stood} == {desk.definitions.publish(definition(version), NOW).hash}
