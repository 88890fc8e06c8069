"""Envelopes follow from contracts: the same nodes, edges, windows and ids wherever they are generated."""

from __future__ import annotations

import msgspec
import pytest

from authoring.document.examples import ACTIVE, AMEND, APPROVE, SUBMIT, bills, contract
from standfast import DefinitionError
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.contract.envelope import (
    generate_envelope,
    outdated_warning,
    version_problem,
)
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.contract.loading import read_contract
from standfast.features.documents.contract.parts import EnvelopeEdge

ORDER = """
entity_type: order
version: 3
fields: {number: {type: string}}
lifecycle:
  version: 4
  initial: new
  terminal: [gone]
  states:
    new: {window: editable}
    picked: {window: amend_only}
    sent: {window: locked}
    gone: {window: locked}
  transitions:
    - {name: pick, from: [new], to: picked}
    - {name: unpick, from: [picked], to: new}
    - {name: send, from: [picked], to: sent}
    - {name: drop, from: [new, picked, sent], to: gone, kind: cancel}
  amended: new
"""


def edges(envelope_of: Contract) -> set[tuple[str, str, str]]:
    """From where to where by what."""
    return {(edge.source, edge.target, edge.on) for edge in generate_envelope(envelope_of).edges.values()}


@pytest.mark.row("E-101", "E-102", "E-918", "ED-10")
def test_the_standard_lifecycle_has_ten_system_nodes_with_their_windows() -> None:
    """The ids and the windows are those of the specification."""
    assert {name: node.window for name, node in bills().nodes.items()} == {
        "sys:start": "editable",
        "sys:state:draft": "editable",
        "sys:gate:submit": "amend_only",
        "sys:state:submitted": "amend_only",
        "sys:gate:approve": "amend_only",
        "sys:state:active": "locked",
        "sys:gate:cancel": "locked",
        "sys:state:cancelled": "locked",
        "sys:state:amended": "editable",
        "sys:end": "locked",
    }


@pytest.mark.row("E-103", "E-104", "E-105", "EC-01")
def test_the_standard_edges_are_there_and_all_nodes_are_reached() -> None:
    """The way from start to end, the way of a rejection, and those of cancelling and amending."""
    state, gate = "sys:state:", "sys:gate:"
    assert edges(contract()) == {
        ("sys:start", f"{state}draft", "ok"),
        (f"{state}draft", f"{gate}submit", "submit"),
        (f"{gate}submit", f"{state}submitted", "pass"),
        (f"{state}submitted", f"{gate}approve", "approve"),
        (f"{gate}approve", f"{state}active", "pass"),
        (f"{state}active", "sys:end", "ok"),
        (f"{gate}approve", f"{state}draft", "reject"),
        ("sys:start", f"{state}amended", "amended"),
        (f"{state}amended", f"{gate}submit", "submit"),
        *((f"{state}{each}", f"{gate}cancel", "cancel") for each in ("draft", "submitted", "active", "amended")),
        (f"{gate}cancel", f"{state}cancelled", "pass"),
        (f"{state}cancelled", "sys:end", "ok"),
    }
    assert {edge.id for edge in bills().edges.values() if edge.rework} == {"edge:sys:gate:approve->sys:state:draft"}


@pytest.mark.row("E-131")
def test_the_standard_slots_are_declared() -> None:
    """Four slots with window and stability."""
    assert {name: (slot.entry, slot.exit, slot.window, slot.stable) for name, slot in bills().slots.items()} == {
        SUBMIT: ("sys:state:draft", "sys:gate:submit", "editable", False),
        APPROVE: ("sys:state:submitted", "sys:gate:approve", "amend_only", True),
        ACTIVE: ("sys:gate:approve", "sys:state:active", "locked", False),
        AMEND: ("sys:state:amended", "sys:gate:submit", "editable", False),
    }


@pytest.mark.row("E-106", "E-107", "E-918")
def test_the_same_contract_gives_the_same_envelope() -> None:
    """Ids and hash are the same each time, and known for ever."""
    assert generate_envelope(contract()) == bills()
    assert bills().hash == bills().content_hash()
    known = "7634e2d906e433935a5333f75d362d4f164e436c741cc359dc9c69e212e2af85"
    assert generate_envelope(ready_contract("credit_note")).hash == known


@pytest.mark.row("E-006", "E-101", "ED-09")
def test_other_names_of_states_work_as_well() -> None:
    """A node for each state, a gate for each transition; what leads back is marked."""
    made = generate_envelope(read_contract(ORDER))
    assert set(made.nodes) == {
        "sys:start", "sys:end",
        "sys:state:new", "sys:state:picked", "sys:state:sent", "sys:state:gone",
        "sys:gate:pick", "sys:gate:unpick", "sys:gate:send", "sys:gate:drop",
    }  # fmt: skip
    assert {edge.id for edge in made.edges.values() if edge.rework} == {"edge:sys:gate:unpick->sys:state:new"}
    assert ("sys:state:sent", "sys:end", "ok") in {(e.source, e.target, e.on) for e in made.edges.values()}
    assert compile_effective(made).gates.is_valid


@pytest.mark.row("E-006", "E-109")
def test_a_changed_lifecycle_is_a_new_version() -> None:
    """The envelope has the lifecycle's version; another skeleton under the same version is refused."""
    later = generate_envelope(contract(lifecycle__version=2, lifecycle__states__active__window="amend_only"))
    assert later.version == 2
    assert later.hash != bills().hash
    assert version_problem(bills(), later) is None
    reused = generate_envelope(contract(lifecycle__states__active__window="amend_only"))
    found = version_problem(bills(), reused)
    assert found is not None
    assert found.code == "ENVELOPE_VERSION_REUSED"
    assert version_problem(bills(), bills()) is None


def test_fields_are_no_part_of_an_envelope() -> None:
    """Another field changes no skeleton."""
    assert generate_envelope(contract(fields__more={"type": "string"})).hash == bills().hash


@pytest.mark.row("E-148")
def test_a_newer_envelope_is_told_of() -> None:
    """A body on an older one is compiled against it, and its author hears that there is another."""
    later = generate_envelope(contract(lifecycle__version=2))
    found = outdated_warning(bills(), later)
    assert found is not None
    assert found.code == "ENVELOPE_OUTDATED"
    assert outdated_warning(later, later) is None


@pytest.mark.row("E-110", "E-115", "E-173")
def test_the_bare_envelope_is_a_workflow() -> None:
    """Without a body it compiles, and everything in it comes from the envelope."""
    bare = compile_effective(bills())
    assert set(bare.slot_map.values()) == {"envelope"}
    assert {edge.provenance for edge in bare.edges_by_id.values()} == {"envelope"}


def test_documents_that_are_amended_in_place_go_back_to_amended() -> None:
    """Every state that is not open has a way there."""
    found = edges(contract(amendment="in_place"))
    assert {source for source, target, on in found if on == "amend"} == {"sys:state:submitted", "sys:state:active"}


def test_a_state_whose_time_is_over_goes_to_a_gate() -> None:
    """The transition that is asked for then."""
    state = {"window": "amend_only", "timeout": "30d", "on_timeout": "cancel"}
    assert ("sys:state:submitted", "sys:gate:cancel", "timeout") in edges(contract(lifecycle__states__submitted=state))


@pytest.mark.row("E-058", "E-181", "E-908", "E-575", "E-708", "E-021")
@pytest.mark.parametrize("name", sorted(bills().nodes))
def test_an_envelope_that_lacks_a_node_does_not_compile(name: str) -> None:
    """Whatever system node is missing, renamed or altered is named."""
    without = {each: node for each, node in bills().nodes.items() if each != name}
    renamed = without | {f"{name}x": msgspec.structs.replace(bills().nodes[name], id=f"{name}x")}
    altered = bills().nodes | {name: msgspec.structs.replace(bills().nodes[name], type="task")}
    loosened = bills().nodes | {name: msgspec.structs.replace(bills().nodes[name], slot="slot:mine")}
    for nodes in (without, renamed, altered, loosened):
        with pytest.raises(DefinitionError) as caught:
            compile_effective(msgspec.structs.replace(bills(), nodes=nodes))
        assert any(each.position == name for each in caught.value.diagnostics)


@pytest.mark.row("E-181")
def test_an_envelope_in_another_order_does_not_compile() -> None:
    """Submitted and active cannot change places."""
    swap = {"sys:state:submitted": "sys:state:active", "sys:state:active": "sys:state:submitted"}

    def swapped(edge: EnvelopeEdge) -> EnvelopeEdge:
        return msgspec.structs.replace(
            edge, source=swap.get(edge.source, edge.source), target=swap.get(edge.target, edge.target)
        )

    wrong = {name: swapped(edge) for name, edge in bills().edges.items()}
    with pytest.raises(DefinitionError, match="was altered"):
        compile_effective(msgspec.structs.replace(bills(), edges=wrong))
