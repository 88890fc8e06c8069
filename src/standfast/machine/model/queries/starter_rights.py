"""What the starter of a run may do: asked when a step is entered that needs a capability, and when a run starts another one.

The capabilities are those that the starter had at the start. A starter whom the directory has deactivated since may do nothing.
"""

from __future__ import annotations

from standfast.kernel.actor import Actor, Needed, needed_words
from standfast.kernel.facts import Facts, PersonFact, person_fact
from standfast.machine.model.state import RunState


def starter_of(state: RunState, actor: Actor) -> Actor | None:
    """Returns whoever started a run, with what they could do then; None if the engine did, which may do everything.

    The way of a document is gone in the name of whoever asked for the transition; `actor` counts while nobody has.
    """
    if state.document is None:
        return Actor(id=state.starter, capabilities=frozenset(state.may)) if state.starter else None
    intent = state.document.intent
    found = actor if intent is None else intent.actor
    return None if found.kind == "system" else found


def lack_of(starter: Actor | None, capability: Needed, what: str, facts: Facts) -> str:
    """Returns why a starter may not do something; empty if they may."""
    if starter is None or not capability:
        return ""
    if not starter.may(capability):
        return f"{starter.id!r}, who started the run, may not {what}: that needs {needed_words(capability)}"
    found = facts.get(person_fact(starter.id)).value
    if isinstance(found, PersonFact) and not found.is_active:
        return f"{starter.id!r}, who started the run, may not {what}: they are deactivated"
    return ""
