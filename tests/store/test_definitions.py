"""Stored definitions: published once, found by name and version, the same for everybody who publishes at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from standfast.store.records.instances import DEFAULT_TENANT, SHARED_TENANT, StoredDefinition, Word
from standfast.store.records.queries import PublishedDefinition
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    OTHER_TENANT,
    definition,
    message,
)
from support.waiting import together


def test_a_definition_is_stored_whole(desk: Desk) -> None:
    """What was published comes back with all it says, and with the time of its publication."""
    sent = definition(source=b"\x00source", compiled=b"\xffcompiled", status="draft")
    stored = desk.definitions.publish(sent, NOW)
    assert stored == msgspec.structs.replace(sent, published_at=NOW)
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
    assert [each.name for each in desk.definitions.listed("default")] == ["approval", "order", "order", "order"]
    assert desk.definitions.versions("default", "refund") == []


def test_an_event_finds_what_it_starts(desk: Desk) -> None:
    """In all versions, since the newest may have lost its trigger; of the tenant and shared; nothing else is looked at."""
    shared = partial(definition, tenant=SHARED_TENANT)
    desk.definitions.publish(definition(), NOW, triggers={"created", "paid"})
    desk.definitions.publish(definition("2"), LATER)
    desk.definitions.publish(shared(name="mail"), NOW, triggers={"created"})
    desk.definitions.publish(definition("2", name="mail"), NOW)
    desk.definitions.publish(definition(name="refund"), NOW)
    desk.definitions.publish(definition(name="secret", tenant=OTHER_TENANT), NOW, triggers={"created"})

    def found(tenant: str, event: str) -> list[tuple[str, str, str]]:
        return [(each.tenant, each.name, each.version) for each in desk.definitions.triggered(tenant, event)]

    own = [("default", "order", "1"), ("default", "order", "2")]
    assert sorted(found("default", "created")) == [("*", "mail", "1"), *sorted([("default", "mail", "2"), *own])]
    assert found("default", "paid") == own
    assert found("default", "refunded") == []
    assert found(OTHER_TENANT, "paid") == []


def test_a_version_that_exists_gets_no_other_triggers(desk: Desk) -> None:
    """What a version was published with is what starts it, whatever it is published with again."""
    desk.definitions.publish(definition(), NOW)
    desk.definitions.publish(definition(), NOW, triggers={"created"})
    assert desk.definitions.triggered("default", "created") == []


def test_definitions_belong_to_their_tenant(desk: Desk) -> None:
    """The same name and version of another tenant, or of the code itself, is another definition."""
    for tenant in ("default", OTHER_TENANT, SHARED_TENANT):
        desk.definitions.publish(definition(tenant=tenant, hash=f"of {tenant}"), NOW)
    for tenant in ("default", OTHER_TENANT, SHARED_TENANT):
        found = desk.definitions.get(tenant, "order", "1")
        assert found is not None
        assert found.hash == f"of {tenant}"
        assert {each.tenant for each in desk.definitions.listed(tenant)} == {tenant, SHARED_TENANT}
    assert [each.tenant for each in desk.definitions.listed("stranger")] == [SHARED_TENANT]


def test_whoever_has_none_of_his_own_gets_the_shared_one(desk: Desk) -> None:
    """A tenant's own definition stands before the shared one of the same name and version; versions are those of its owner."""
    for version in ("1", "2"):
        desk.definitions.publish(definition(version, tenant=SHARED_TENANT, hash=f"shared {version}"), NOW)
    desk.definitions.publish(definition("3", hash="own 3"), NOW)
    assert [_hash(desk, DEFAULT_TENANT, version) for version in ("1", "2", "3")] == ["shared 1", "shared 2", "own 3"]
    assert [_hash(desk, OTHER_TENANT, version) for version in ("1", "2", "3")] == ["shared 1", "shared 2", None]
    assert desk.definitions.versions(DEFAULT_TENANT, "order") == ["3"]
    assert desk.definitions.versions(OTHER_TENANT, "order") == []
    assert desk.definitions.versions(SHARED_TENANT, "order") == ["1", "2"]


def test_a_shared_version_is_not_stored_again_for_a_tenant(desk: Desk) -> None:
    """What instances of a tenant may be pinned to stays what it is: the shared one is what stands, and the caller sees its hash."""
    desk.definitions.publish(definition(tenant=SHARED_TENANT, hash="shared"), NOW)
    assert desk.definitions.publish(definition(hash="own"), NOW).hash == "shared"
    assert _hash(desk, DEFAULT_TENANT, "1") == "shared"


def test_a_definition_keeps_what_its_author_wrote(desk: Desk) -> None:
    """Source, kind of text, description and author come back as they were stored, with the time of storing."""
    written = definition(media_type="application/yaml", description="buys things", published_by="ada")
    desk.definitions.publish(written, NOW)
    assert desk.definitions.get(DEFAULT_TENANT, "order", "1") == msgspec.structs.replace(written, published_at=NOW)


def test_names_are_those_of_all_tenants(desk: Desk) -> None:
    """Whoever looks for work that nobody could know asks for the definitions of everybody."""
    assert desk.definitions.names() == set()
    desk.definitions.publish(definition(), NOW)
    desk.definitions.publish(definition(tenant=OTHER_TENANT, name="secret"), NOW)
    desk.definitions.publish(definition("2", tenant=SHARED_TENANT), NOW)
    assert desk.definitions.names() == {"order", "secret"}


def _hash(desk: Desk, tenant: str, version: str) -> str | None:
    found = desk.definitions.get(tenant, "order", version)
    return None if found is None else found.hash


def test_a_list_says_what_is_published(desk: Desk) -> None:
    """Name, version, kind, hash and time of every published version; drafts are not in it."""
    desk.definitions.publish(definition("2", kind="process"), LATER)
    desk.definitions.publish(definition("1"), NOW)
    desk.definitions.publish(definition("3", status="draft"), NOW)
    assert desk.definitions.listed("default") == [
        _listed(version="1", kind="saga", hash="hash of 1", published_at=NOW),
        _listed(version="2", kind="process", hash="hash of 2", published_at=LATER),
    ]


def _listed(**rest: Any) -> PublishedDefinition:
    return PublishedDefinition(tenant=DEFAULT_TENANT, name="order", description="", published_by="system", **rest)


def test_messages_that_came_first_are_for_the_graph(desk: Desk) -> None:
    """A message to a name that nobody had published was taken for one to a decider; once it is published, graphs read it."""
    desk.writer.accept([message()], NOW)
    desk.definitions.publish(definition(name="refund", tenant=SHARED_TENANT), NOW)
    graphs = [Word("$graph", "Tell", 1)]
    assert desk.inbox.claim(NOW, words=graphs, hold=HOUR, limit=9) == []
    desk.definitions.publish(definition(tenant=SHARED_TENANT), NOW)
    assert len(desk.inbox.claim(NOW, words=graphs, hold=HOUR, limit=9)) == 1


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
