"""Waits for published events, decided purely."""

from __future__ import annotations

import pytest

from machine.hosting import Host
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.messages import PublishedMessage


@pytest.mark.row("EC-22")
def test_a_published_event_is_a_word_from_outside() -> None:
    """Calls in a row are counted anew once an event has come, as they are after a signal."""
    nodes = [
        g.Node(id="wait", op=g.WaitEventsOp(events=(g.Awaited(event="paid"),))),
        *(g.Node(id=name, op=g.TaskOp(work=g.HandlerCall(handler=name))) for name in "ab"),
    ]
    edges = [g.Edge(source="a", target="wait"), g.Edge(source="wait", target="b")]
    policies = g.Policies(chain_limit=1)
    host = Host(
        compile_graph(kind="saga", name="g", version="1", entry="a", nodes=nodes, edges=edges, policies=policies)
    )
    host.tell(c.StartWorkflow())
    host.tell(c.CompleteStep(step=1), effect=next(iter(host.calls)))
    host.tell(c.TakeEvents(step=2, events=[PublishedMessage(id="e1", event="paid")]))
    assert (host.state.status, [call.body.node for call in host.calls.values()]) == ("running", ["b"])
