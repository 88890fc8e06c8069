"""What a human step asks: whom, its subject with holes for values of the data, what it shows of them, and what a rejection leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypedDict, cast, get_args

import msgspec

from standfast.expressions.model.tree import Variable
from standfast.features.sagas.builder_state import BuilderState
from standfast.features.sagas.expressions import read_data, text_of
from standfast.graph.model import ABSTAINED, CONFIRMED, REJECTED, HumanOp, OnReject, Plain
from standfast.graph.values.approver_rules import RULE, Agree, Ask, Pick, agreement_of_list
from standfast.graph.values.value_checks import some_findings

REFUSALS: Final[tuple[OnReject, ...]] = get_args(OnReject)


class AskOptions(TypedDict, total=False):
    """Whom a human step asks, what they have to agree on, and what they see."""

    when: str | dict[str, object]
    """Ask only if this condition on the data holds, and go on otherwise; its step is the name with a question mark."""
    role: str
    """The one role that is asked: those who have it share the question."""
    ask: str | Ask | Sequence[str | Ask]
    """Who is asked: `user:ann`, `role:finance`, `manager`, `rule:cost_center.owner`, a resolver of the application; or an `ask(…)`."""
    chain: str
    """The approval chain that says who is asked, stage by stage."""
    agree: Literal["any", "all"] | int
    """How many have to be for it: `any`, `all`, or a number. Unless said, all of a list of people, and any of one role."""
    agree_weight: int
    """How much weight those have to have together who are for it."""
    abstain: bool
    """Whether one may abstain."""
    requires_reason: bool
    """Whether a rejection needs a comment."""
    self_approval: bool
    """Whether whoever started the saga may decide too; yes, unless said."""
    distinct_from: str | Sequence[str]
    """Human steps whose deciders may not decide this one."""
    distinct_approvers: bool
    """Whether nobody may decide who has decided another human step."""
    delegable: bool
    """Whether those who are asked can have others decide in their place; yes, unless said."""
    shows: Sequence[str]
    """Paths into the data whose values are shown."""


def ask(who: str, *, weight: int = 1, pick: Pick = "any") -> Ask:
    """Somebody who is asked, with a weight; `pick` says whether each of those who have a role is asked, or one of them in turn."""
    by, _, of = who.partition(":")
    return Ask(by=by.strip(), of=of.strip(), weight=weight, pick=pick)


def question(
    parts: BuilderState, name: str, *, subject: str, on_reject: OnReject | None, options: AskOptions
) -> HumanOp:
    """What the node of a human step does; what is wrong with it becomes a finding."""
    text, template = text_of(parts, name, subject)
    for option in ("role", "chain"):
        if options.get(option) == "":
            parts.find(
                "asks", f"`{option}` of {name!r} is '', so nobody could decide; give a name, or leave it out", name
            )
    agree, least = _agreement(parts, name, options)
    asks = _asks(parts, name, options["ask"]) if "ask" in options else ()
    return HumanOp(
        outcomes=(CONFIRMED, REJECTED, ABSTAINED) if options.get("abstain", False) else (CONFIRMED, REJECTED),
        subject=text,
        template=template,
        role=options.get("role", ""),
        asks=asks,
        chain=options.get("chain", ""),
        agree=agreement_of_list(agree, [each.by for each in asks]),
        least=least,
        requires_reason=options.get("requires_reason", False),
        self_approval=options.get("self_approval", True),
        distinct_from=_names(parts, name, options["distinct_from"]) if "distinct_from" in options else (),
        distinct_approvers=options.get("distinct_approvers", False),
        delegable=options.get("delegable", True),
        shows=_shown(parts, name, options.get("shows", ())),
        on_reject=on_reject,
    )


def word_for_rejection(parts: BuilderState, name: str, on_rejected: object) -> OnReject | None:
    """What follows a rejection, if a word says it; anything that is no text builds a way."""
    word = next((each for each in REFUSALS if each == on_rejected), None)
    if isinstance(on_rejected, str) and word is None:
        remedy = "give 'fail', 'abort', or a function that builds a way"
        parts.find("branch", f"a rejection of {name!r} leads to {on_rejected!r}; {remedy}", name)
    return word


def _agreement(parts: BuilderState, name: str, options: AskOptions) -> tuple[Agree | None, int]:
    """How many have to be for it, or how much they have to weigh."""
    agree = options.get("agree")
    if "agree_weight" in options:
        if agree is not None:
            told = f"{name!r} says by 'agree' and 'agree_weight' what has to be agreed; give one of them"
            parts.find("same_option", told, name)
        return "weight", options["agree_weight"]
    if agree is None or agree in ("any", "all"):
        return agree, 0
    if isinstance(agree, int) and not isinstance(agree, bool):
        return "n", agree
    parts.find("agree", f"{name!r} needs the agreement of {agree!r}; it can be 'any', 'all' or a number", name)
    return None, 0


def _asks(parts: BuilderState, name: str, given: object) -> tuple[Ask, ...]:
    """Those who are asked; the text of a rule becomes an expression."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    parts.findings += some_findings(name, "asks", f"`ask` of {name!r}", several, then="nobody could decide")
    found = []
    for each in several:
        made = ask(each) if isinstance(each, str) and each.strip() else each
        if not isinstance(made, Ask):
            message = f"{name!r} asks {each!r}; write 'user:ann', 'role:finance', 'manager', 'rule:<path>', or ask('role:finance', weight=2)"
            parts.find("asks", message, name)
        elif made.by == RULE:
            read = read_data(parts, name, made.of, "mapping")
            found += [msgspec.structs.replace(made, rule=read.to_data())] if read is not None else []
        else:
            found.append(made)
    return tuple(found)


def _names(parts: BuilderState, name: str, given: object) -> tuple[str, ...]:
    """Names of other steps."""
    several = (given,) if isinstance(given, str) else given
    if isinstance(several, list | tuple) and all(isinstance(each, str) for each in several):
        then = "it would keep nobody apart"
        parts.findings += some_findings(name, "distinct_from", f"`distinct_from` of {name!r}", several, then=then)
        return tuple(several)
    parts.find("distinct_from", f"{name!r} is to be distinct from {given!r}; give names of human steps", name)
    return ()


def _shown(parts: BuilderState, name: str, shows: object) -> dict[str, dict[str, Plain]]:
    """The stored paths of what is shown, by the names that their author wrote."""
    if not isinstance(shows, list | tuple) or not all(isinstance(each, str) for each in shows):
        message = f"{name!r} shows {shows!r}; give a list of paths into the data, such as ['amount', 'supplier.name']"
        parts.find("bad_expression", message, name)
        return {}
    found: dict[str, dict[str, Plain]] = {}
    for path in cast("Sequence[str]", shows):
        read = read_data(parts, name, path, "mapping")
        if read is not None and isinstance(read.tree, Variable):
            found[path] = read.to_data()
        elif read is not None:
            message = f"{name!r} shows {path!r}, which is no path into the data; compute it in a step before"
            parts.find("bad_expression", message, name)
    return found
