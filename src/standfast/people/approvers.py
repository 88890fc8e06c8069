"""Finds those who are to be asked: the errand that a question sends the engine on.

Questions that nobody can answer any more, because those who are asked were deactivated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from standfast.engine.common.handlers import EffectContext, Fail
from standfast.graph.values.approver_rules import Ask
from standfast.kernel.names import joined
from standfast.machine.model.commands.run_commands import PeopleFound, PeopleReviewed
from standfast.machine.model.engine_tasks import (
    Data,
    FindPeople,
    Person,
    ReviewPeople,
    picked_by,
    role_of_place,
)
from standfast.machine.model.task_state import MISSING, shown
from standfast.people.approval_chains import Chain
from standfast.people.directory import Crowd, Directory, Look
from standfast.people.resolvers import BUILT_IN, NOBODY, PeopleRequest, Resolvers


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where a finder looks."""

    directory: Directory
    resolvers: Resolvers
    chain: Callable[[str, str], Chain | None]
    """The newest version of a tenant's chain."""
    next_number: Callable[[str], int]
    """Counts over all processes, for those who are asked in turn."""
    now: Callable[[], datetime]


class ApproverResolver:
    """Does the errand FindPeople; its answer says who is asked, and why."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def find(self, context: EffectContext, errand: FindPeople) -> PeopleFound:
        """Who is asked. What a resolver of the application raises is raised: the errand is tried again, and then given up."""
        return self.found(context.tenant, context.decider, errand)

    def found(self, tenant: str, definition: str, errand: FindPeople) -> PeopleFound:
        """The same, for whoever looks without an errand."""
        chained = [ask for ask in errand.asks if ask.by == "chain"]
        if chained:
            return self._chain(tenant, errand, chained)
        search = _Search(errand, tenant, definition)
        given = {
            place: self._sources.resolvers.ask(ask.by, search.request(ask))
            for place, ask in enumerate(errand.asks)
            if ask.by not in BUILT_IN
        }
        turns = {
            place: self._sources.next_number(joined("in turn", tenant, ask.by, ask.of))
            for place, ask in enumerate(errand.asks)
            if ask.pick == "in_turn"
        }
        with self._sources.directory.looking(tenant) as rows:
            search.look = Look(rows, self._sources.now())
            for place, ask in enumerate(errand.asks):
                search.answer(ask, given.get(place), turns.get(place))
        return PeopleFound(step=errand.step, people=search.people, why=search.why)

    def review(self, context: EffectContext, errand: ReviewPeople) -> PeopleReviewed:
        """Who of those that are asked cannot decide now, as the errand ReviewPeople asks."""
        return self.reviewed(context.tenant, context.decider, errand)

    def reviewed(self, tenant: str, definition: str, errand: ReviewPeople) -> PeopleReviewed:
        """The same, for whoever looks without an errand."""
        search = _Search(
            FindPeople(
                step=errand.step,
                node=errand.node,
                asks=[],
                requester=errand.requester,
                barred=errand.barred,
                in_person=errand.in_person,
            ),
            tenant,
            definition,
            decided=errand.decided,
        )
        lost = []
        with self._sources.directory.looking(tenant) as rows:
            search.look = Look(rows, self._sources.now())
            for place, each in enumerate(errand.people):
                hands = errand.hands[place] if errand.hands else []
                if not search.can_decide(each, hands, errand.lent[place] if errand.lent else {}):
                    lost.append(each)
            lost += search.crowded([each for each in errand.people if each not in lost])
        looked_at = [shown(each) for each in errand.people]
        return PeopleReviewed(step=errand.step, lost=lost, looked_at=looked_at, why=search.why)

    def _chain(self, tenant: str, errand: FindPeople, chained: list[Ask]) -> PeopleFound:
        if len(errand.asks) > 1:
            raise Fail(
                f"the approval chain {chained[0].of!r} of {errand.node!r} is asked alone; others go into its stages"
            )
        name = chained[0].of
        chain = self._sources.chain(tenant, name)
        if chain is None:
            again = "look again with `run.resume`, which takes the capability 'execution:resume'"
            raise Fail(f"there is no approval chain {name!r}; publish it with `engine.chains.publish`, and {again}")
        why: Data = {"resolver": "chain", "of": name, "result": [f"version {chain.version}"]}
        return PeopleFound(step=errand.step, stages=chain.stages, chain_version=str(chain.version), why=[why])


class _Search:
    """One errand under way."""

    def __init__(self, errand: FindPeople, tenant: str, definition: str, *, decided: Sequence[str] = ()) -> None:
        self._errand = errand
        self._decided = decided
        self._tenant = tenant
        self._definition = definition
        self.look: Look
        """What the directory says; it is looked at once the application's own resolvers have answered, which may take long."""
        self.people: list[Person] = []
        self.why: list[Data] = []
        self._notes: list[str] = []
        """What is worth knowing about the answer to the present ask."""
        self._missing: list[str] = []
        """Those whom it names and who cannot act."""

    def request(self, ask: Ask) -> PeopleRequest:
        """What a resolver of the application is asked."""
        errand = self._errand
        return PeopleRequest(
            tenant=self._tenant,
            definition=self._definition,
            node=errand.node,
            of=ask.of,
            requester=errand.requester,
            data=errand.data,
        )

    def answer(self, ask: Ask, given: list[Person] | None, turn: int | None) -> None:
        """Find those of one ask, and write down how."""
        self._notes, self._missing = [], []
        if given is not None:
            found = self._named(given, ask, turn)
        elif ask.by == "role":
            found = self._role(ask.of, ask, turn)
        elif ask.by == "manager":
            found = self._manager(ask)
        elif ask.by == "user":
            found = self._present([ask.of], via=ask.via or "named")
        else:
            raise Fail(f"{ask.by!r} is not found by an errand")
        found = [replace(each, weight=ask.weight) for each in found]
        self.people += found
        said: Data = {"resolver": ask.by, "of": ask.of, "pick": ask.pick, "result": [_shown(each) for each in found]}
        if self._errand.requester:
            said["requester"] = self._errand.requester
        said |= {MISSING: self._missing} if self._missing else {}
        self.why.append(said | ({"notes": self._notes} if self._notes else {}))

    def _named(self, given: list[Person], ask: Ask, turn: int | None) -> list[Person]:
        """Those whom a resolver of the application has named."""
        users = [each.name for each in given if each.kind == "user" and each != NOBODY]
        self._missing = [ask.words] * given.count(NOBODY)
        found = self._present(users, via=f"resolver {ask.by}", turn=turn)
        for each in given:
            if each.kind == "role" and not (turn is not None and found):
                holders = self._role(each.name, ask, turn)
                # Where all have to agree, a role without holders stays a place of its own.
                self._missing += [] if holders or turn is not None else [_shown(each)]
                found += holders
        if not given:
            self._notes.append(f"the resolver {ask.by!r} found nobody")
        return found

    def _role(self, role: str, ask: Ask, turn: int | None) -> list[Person]:
        via = ask.via or f"role {role}"
        if self.look.is_empty():
            self._notes.append("the directory knows nobody, so whoever has the role is asked")
            return [Person(kind="role", name=role, via=via)]
        holders = self.look.holders(role)
        if not holders:
            self._notes.append(f"nobody has the role {role!r}")
        if not self.look.rows.has_grants() and ask.pick == "any":
            self._notes.append("the directory grants no roles, so whoever has this one is asked")
            return [Person(kind="role", name=role, via=via)]
        if ask.pick != "any":
            return self._present(holders, via=via, role=role, turn=turn)
        crowd = self.look.crowd(holders)
        if any(self._can_decide(crowd, each, role) for each in holders):
            return [Person(kind="role", name=role, via=via)]
        for each in holders:
            why = "is deactivated" if not crowd.is_active(each) else "may not decide this"
            self._notes.append(f"{each!r} {why}")
        return []

    def _can_decide(self, crowd: Crowd, holder: str, role: str) -> bool:
        """Whether somebody who has a role can decide, or who stands in for them."""
        if holder in self._errand.barred or holder in self._decided:
            return False
        return crowd.is_active(holder) or bool(self._stand_in(crowd, holder, role))

    def can_decide(self, person: Person, hands: Sequence[str], lent: Mapping[str, str]) -> bool:
        """Whether somebody can decide from a place that is asked, by the law by which they would be refused; it is written down how that was found."""
        if person.kind == "role":
            before = len(self.people)
            self.answer(Ask(by="role", of=person.name), None, None)
            return len(self.people) > before
        lapse = "" if self.look.is_empty() else self._lapse(person, hands, lent)
        said: Data = {"resolver": "user", "of": person.name, "pick": "any", "result": [] if lapse else [_shown(person)]}
        self.why.append(said | ({"notes": [lapse]} if lapse else {}))
        return not lapse

    def crowded(self, people: Sequence[Person]) -> list[Person]:
        """Return those of these places that nobody is left for, because each person decides from one place only; it is written down.

        As many places as possible are filled, those with more weight first.
        """
        if len(people) <= 1:
            return []
        able = [self._able(each) for each in people]
        taken: dict[str, int] = {}
        order = sorted(range(len(people)), key=lambda place: -people[place].weight)
        lost = [people[place] for place in order if able[place] is not None and not _is_filled(place, able, taken)]
        for each in lost:
            told = (
                f"whoever could decide for {_shown(each)!r} is needed for another place, and each person decides once"
            )
            self.why.append({"resolver": each.kind, "of": each.name, "pick": "any", "result": [], "notes": [told]})
        return lost

    def _able(self, person: Person) -> list[str] | None:
        """Return those who could decide from a place that is asked; None if anybody may who says that they have the role."""
        if self.look.is_empty() or (person.kind == "role" and not self.look.rows.has_grants()):
            return None
        role = person.name if person.kind == "role" else picked_by(person)
        owners = self.look.holders(role) if person.kind == "role" else [person.name]
        crowd = self.look.crowd(owners)
        kept_out = {self._errand.requester, *self._errand.barred}
        found = [
            each for each in owners if crowd.is_active(each) and each not in {*self._errand.barred, *self._decided}
        ]
        for owner in () if self._errand.in_person else owners:
            found += [
                each.receiver
                for each in crowd.delegations.get(owner, ())
                if each.covers(role=role, definition=self._definition)
                and each.receiver not in kept_out
                and crowd.is_here(each.receiver)
            ]
        return found

    def _lapse(self, person: Person, hands: Sequence[str], lent: Mapping[str, str]) -> str:
        """Why one who is asked by name cannot decide now; empty if they can, or somebody who stands in for them."""
        owner, role = person.for_ or person.name, role_of_place(person)
        if role and self.look.rows.has_grants() and owner not in self.look.holders(role):
            return f"{owner!r} does not have the role {role!r} any more"
        crowd = self.look.crowd([person.name, *hands, *lent, *lent.values(), *filter(None, [person.for_])])
        for giver in [*(each for each in hands if each not in lent), *lent.values()]:
            if not crowd.is_active(giver):
                return f"{giver!r}, who has delegated it, is deactivated"
        pairs = lent if hands or not person.for_ else {person.for_: person.name}
        for giver, other in pairs.items():
            if not self._stands_in(crowd, giver, other, role):
                return f"{other!r} does not stand in for {giver!r} any more"
        if crowd.is_active(person.name) or self._has_deputy(crowd, person):
            return ""
        return f"{person.name!r} is deactivated"

    def _stands_in(self, crowd: Crowd, giver: str, other: str, role: str) -> bool:
        return any(
            each.receiver == other and each.covers(role=role, definition=self._definition)
            for each in crowd.delegations.get(giver, ())
        )

    def _has_deputy(self, crowd: Crowd, person: Person) -> bool:
        """Whether somebody is here who stands in for a person in what these are asked, and may decide."""
        errand = self._errand
        kept_out = {errand.requester, *errand.barred}
        return not errand.in_person and any(
            each.covers(role=picked_by(person), definition=self._definition)
            and each.receiver not in kept_out
            and crowd.is_here(each.receiver)
            for each in crowd.delegations.get(person.name, ())
        )

    def _manager(self, ask: Ask) -> list[Person]:
        """The manager, or who stands in for them, or else the manager of that one, and so on."""
        of = ask.of or self._errand.requester
        if not of:
            self._notes.append("nobody wants the run, so there is no manager to ask")
            return []
        met = {of}
        at = of
        while True:
            known = self.look.person(at)
            if known is None or not known.manager or known.manager in met:
                self._notes.append(f"{at!r} is not in the directory" if known is None else f"{at!r} has no manager")
                return []
            at = known.manager
            met.add(at)
            crowd = self.look.crowd([at])
            if crowd.is_here(at):
                return [Person(name=at, via=f"manager of {of}")]
            self._notes.append(f"{at!r} is {'away' if crowd.is_active(at) else 'deactivated'}")
            if other := self._stand_in(crowd, at, ""):
                return [Person(name=other, via=f"manager of {of}", for_=at)]

    def _present(self, names: Iterable[str], *, via: str, role: str = "", turn: int | None = None) -> list[Person]:
        """These people, without those who are deactivated; those who are away are replaced by who stands in for them.

        In turn, it is one of those who may decide and are here; of those that somebody stands in for, if nobody is; of those who are away,
        if nobody does.
        """
        asked = list(dict.fromkeys(names))
        crowd = self.look.crowd(asked)
        here, replaced, away = list[Person](), list[Person](), list[Person]()
        for name in asked:
            if turn is not None and name in self._errand.barred:
                self._notes.append(f"{name!r} may not decide this")
            elif crowd.is_here(name):
                here.append(Person(name=name, via=via, role=role))
            elif other := self._stand_in(crowd, name, role):
                replaced.append(Person(name=other, via=via, for_=name, role=role))
            elif crowd.is_active(name):
                self._notes.append(f"{name!r} is away, and nobody stands in")
                away.append(Person(name=name, via=via, role=role))
            else:
                self._notes.append(f"{name!r} is deactivated")
                self._missing += [] if role else [name]  # Of a role, they are no holder any more who decides.
        if turn is None:
            order = {name: place for place, name in enumerate(asked)}
            return sorted([*here, *replaced, *away], key=lambda each: order[each.for_ or each.name])
        first = here or replaced or away
        return [first[turn % len(first)]] if first else []

    def _stand_in(self, crowd: Crowd, name: str, role: str) -> str:
        """Who stands in for somebody; none who may not decide, or wants something of them, and nobody where people are asked in person."""
        if self._errand.in_person:
            return ""
        return crowd.stand_in(
            name, role=role, definition=self._definition, but={self._errand.requester, *self._errand.barred}
        )


def _is_filled(place: int, able: Sequence[Sequence[str] | None], taken: dict[str, int]) -> bool:
    """Fill a place by a person who is able to, and move others to places that they can take as well; return whether that is possible."""
    came_from: dict[str, tuple[int, str]] = {}
    waiting = [(place, "")]
    for at, mover in waiting:  # It grows while it is gone through.
        for name in able[at] or ():
            if name in came_from:
                continue
            came_from[name] = (at, mover)
            if name in taken:
                waiting.append((taken[name], name))
                continue
            moved = name
            while moved:
                taken[moved], moved = came_from[moved]
            return True
    return False


def _shown(person: Person) -> str:
    name = f"role:{person.name}" if person.kind == "role" else person.name
    return f"{name} for {person.for_}" if person.for_ else name


class Stranded(msgspec.Struct, frozen=True):
    """Those of whom no answer can come: deactivated people for whom nobody stands in, and roles that nobody else has."""

    people: frozenset[str]
    roles: frozenset[str]

    def holds_up(self, asked: Iterable[Person], *, takes_several: bool) -> bool:
        """Whether a question waits for them: none of those who are asked can answer it, or one of several who have to agree cannot."""
        lost = [each.name in (self.roles if each.kind == "role" else self.people) for each in asked]
        return any(lost) if takes_several else bool(lost) and all(lost)


def stranded(look: Look) -> Stranded:
    """Who is stranded now. A delegation that is about one role or one workflow only is no remedy for a person as a whole."""
    gone = look.rows.inactive()
    crowd = look.crowd(gone)
    people = frozenset(each for each in gone if not crowd.stand_in(each, role="", definition=""))
    roles = frozenset().union(*look.roles(gone).values()) if gone else frozenset[str]()
    return Stranded(people, frozenset(each for each in roles if _is_lost(look, each)))


def _is_lost(look: Look, role: str) -> bool:
    """Whether nobody can decide as holder of a role."""
    holders = look.holders(role)
    crowd = look.crowd(holders)
    return not any(crowd.is_active(each) or crowd.stand_in(each, role=role, definition="") for each in holders)
