"""Calls of the rules that every document keeps: whether they hold in a database that is in use, and what sets it right."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from standfast.calls.authorization import check_reader, check_repairer
from standfast.calls.context import CallContext, checked_limit, checked_text
from standfast.calls.references import InstanceLike, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError, PayloadError
from standfast.features.documents.invariants import scan as patrol
from standfast.features.documents.invariants.repair import repaired
from standfast.features.documents.invariants.rules import RULES
from standfast.features.documents.invariants.views import Invariant, InvariantPage, Mended, Violation
from standfast.kernel.ids import InstanceId
from standfast.kernel.names import joined


class FutureInvariants:
    """Whether the rules hold that every document of the tenant keeps. Looking takes no lock, and nobody waits for it."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def list(self) -> Reply[builtins.list[Invariant]]:
        """The rules, and what to do where one does not hold."""

        def read() -> list[Invariant]:
            return [
                Invariant(code=each.code, says=each.says, remedy=each.remedy, is_repairable=each.is_mended)
                for each in RULES.values()
            ]

        return self._desk.read(read)

    def workflows(self, *, rules: Sequence[str] = ()) -> Reply[builtins.list[Violation]]:
        """Where the published workflows of documents break a rule: those of the tenant, and those that all share."""

        def read() -> list[Violation]:
            check_reader(self._desk)
            return patrol.of_workflows(self._desk, _checked_rules(rules))

        return self._desk.read(read)

    def check(self, *, cursor: str | None = None, limit: int = 1000, rules: Sequence[str] = ()) -> Reply[InvariantPage]:
        """Look at a stretch of the documents, newest first: each history is folded again and held against all that is stored.

        `cursor` is the `next` of the stretch before. What is read at once, some two hundred documents, is as of one moment.
        """

        def read() -> InvariantPage:
            check_reader(self._desk)
            after = None if cursor is None else checked_instance(checked_text(cursor, "cursor"))
            return patrol.page(self._desk, after, checked_limit(limit), _checked_rules(rules))

        return self._desk.read(read)

    def patrol(self, *, limit: int = 1000, rules: Sequence[str] = (), anew: bool = False) -> Reply[InvariantPage]:
        """Look at the stretch behind the last one; the database remembers how far that was, so that a job can be stopped at any moment.

        Behind the last document it begins again with the newest, as it does if `anew` says so.
        """

        def read() -> InvariantPage:
            check_reader(self._desk)
            request = self._desk.request
            name = joined("patrol", *filter(None, (request.tenant, request.partition)))  # Each goes its own way.
            said = "" if anew else self._desk.keep(lambda keeper: keeper.noted(name), may_repeat=True)
            after = checked_instance(said) if said else None
            found = patrol.page(self._desk, after, checked_limit(limit), _checked_rules(rules))
            self._desk.keep(lambda keeper: keeper.note(name, found.next or ""), may_repeat=True, check=check_reader)
            return found

        return self._desk.act(read)

    def of(self, document: InstanceLike) -> Reply[builtins.list[Violation]]:
        """Where one document breaks a rule; it is given by the id of its run."""

        def read() -> list[Violation]:
            check_reader(self._desk)
            return self._of(checked_instance(document))

        return self._desk.read(read)

    def _of(self, identity: InstanceId) -> builtins.list[Violation]:
        found = list(patrol.batch(self._desk, [identity]))
        if not found:
            raise NotFoundError("document", identity)
        return [patrol.violation(each, header) for header, several in found for each in several]

    def repair(self, document: InstanceLike, *, reason: str) -> Reply[Mended]:
        """Set a document right from its history: rows and status are made again, calls that are gone are made, others withdrawn.

        It takes the capability `execution:repair`. Who asked for it and why stands in the history. ConflictError if the history itself
        was changed: then only a backup helps.
        """

        def read() -> Mended:
            check_repairer(self._desk)
            if not checked_text(reason, "reason").strip():
                raise PayloadError("say why: a repair stands in the history of the document")
            return repaired(self._desk, checked_instance(document), reason)

        return self._desk.act(read)


def _checked_rules(given: Sequence[str]) -> frozenset[str]:
    """Codes of rules; PayloadError if there is one that does not exist."""
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise PayloadError("rules is a list of codes, such as ['WF-03']")
    unknown = sorted(set(given) - RULES.keys())
    if unknown:
        raise PayloadError(f"there is no rule {', '.join(unknown)}; there are {', '.join(RULES)}")
    return frozenset(given)
