"""Calls of people: the questions that wait for them, their answers, and what else they do to a question."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from standfast.calls.context import (
    CallContext,
    checked_key,
    checked_last,
    checked_limit,
    checked_text,
    failed,
)
from standfast.calls.handlers.step_handlers import plain
from standfast.calls.references import DefinitionLike, StepLike, checked_definition, checked_step
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError, StandfastError
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.authorization import (
    Acted,
    Concerned,
    asked_at,
    authority_at,
    have_decided,
    may_speak,
    on_question,
    requester_of,
)
from standfast.features.tasks.reads import (
    FoundTask,
    check_list,
    check_question,
    checked_part,
    decision_place,
    detailed,
    found_task,
    may_see_all,
    mine_of,
    onlooker,
    place_of,
    rows_of,
)
from standfast.features.tasks.separation import DirectoryAnswers, counted, looked, open_to
from standfast.features.tasks.views import DecidedTask, TaskCounts, TaskDetails, TaskOutcome, decided_task, listed_task
from standfast.graph.values.approver_rules import HEAVIEST
from standfast.kernel.codec.message_types import is_whole
from standfast.machine.model.commands import run_commands as c
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.tasks import AssigneeRecord, ListedDecision, ListedTask, TaskQuery

_MOST_AT_ONCE = 1000


class FutureTasks:
    """What can be asked of steps that wait for people. Who acts, and whose tasks are `mine`, is the actor of these calls (`acting`)."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    # -- questions

    def list(
        self,
        *,
        mine: bool | Literal["roles", "delegated"] = False,
        role: str | None = None,
        requested_by_me: bool = False,
        definition: DefinitionLike = "",
        key: str = "",
        is_overdue: bool = False,
        after: HumanTask | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[HumanTask]]:
        """The questions that wait for an answer, oldest first; give the last one as `after` for the next page.

        `mine` are those that ask the actor by name, ask a role that the actor has, were delegated to the actor, or ask somebody for
        whom the actor stands in by a delegation in the directory, which also says what roles there are; `mine="roles"` and
        `mine="delegated"` are parts of these: what asks roles of the actor, and what is the actor's in the place of others. `role` are those
        that ask a role; `requested_by_me` those of runs that the actor wanted. What is given besides narrows the list: the
        definition, the business key of the run, and whether the question should have been answered by now. Those of one run,
        answered ones included, are asked of the run.

        Questions to a role that one has, and that four eyes keep one from, are not `mine`. Lists that are neither `mine` nor
        `requested_by_me` nor of a role of one's own take the capability `execution:read`, or one by which questions are handed on,
        such as `task:reassign`.
        """

        def query() -> TaskQuery:
            asked = None if role is None else (AssigneeRecord("role", checked_key(role, "role")),)
            return TaskQuery(
                people=asked,
                definition=checked_definition(definition)[0] if definition else "",
                key=checked_key(key, "key", may_be_empty=True),
                requester=self._me if requested_by_me else "",
                due_before=self._desk.service.shared.clock.now() if is_overdue else None,
                limit=checked_limit(limit),
            )

        def others() -> builtins.list[ListedTask]:
            last, wanted = checked_last(after, HumanTask, "`after`"), query()
            if not requested_by_me:
                check_list(self._desk, role=role, definition=wanted.definition)
            with self._desk.reader.look() as reader:
                return rows_of(reader, [wanted], place_of(last))

        def own() -> builtins.list[HumanTask]:
            part, last = checked_part(mine), checked_last(after, HumanTask, "`after`")
            if part is None or role is not None:
                raise PayloadError(
                    "`mine` holds the questions to roles of one's own already; leave out `role` or `mine`"
                )
            wanted, authority = query(), authority_at(self._desk)
            queries = mine_of(authority, wanted, part)

            def page(reader: TenantReader, told: DirectoryAnswers) -> builtins.list[HumanTask]:
                return open_to(self._desk, reader, queries, last, authority=authority, told=told)

            return looked(self._desk, page)

        if mine is not False:
            return self._desk.consult(own)
        return self._desk.read_for(
            others,
            lambda rows, desk: [listed_task(each, desk.request.actor) for each in rows],
            needs_roles=lambda rows: any(each.task.guarded for each in rows),
            is_patient=not requested_by_me and not may_see_all(self._desk),
        )

    def decided(self, *, after: DecidedTask | None = None, limit: int = 100) -> Reply[builtins.list[DecidedTask]]:
        """What the actor has decided, newest first; give the last one as `after` for the next page."""

        def read() -> builtins.list[ListedDecision]:
            last = checked_last(after, DecidedTask, "`after`")
            place = None if last is None else decision_place(last)
            with self._desk.reader.look() as reader:
                return reader.decisions_by(self._desk.request.actor.id, after=place, limit=checked_limit(limit))

        return self._desk.read_for(
            read,
            lambda rows, desk: [decided_task(each, desk.request.actor) for each in rows],
            needs_roles=lambda rows: any(each.task.task.guarded for each in rows),
        )

    def counts(self) -> Reply[TaskCounts]:
        """How many questions wait for the actor, as `list(mine=True)` shows them."""

        def read() -> TaskCounts:
            authority = authority_at(self._desk)
            return looked(self._desk, lambda reader, told: counted(self._desk, reader, authority, told))

        return self._desk.consult(read)

    def get(self, task: StepLike) -> Reply[TaskDetails]:
        """A question with all who are or were asked and why, with their decisions and comments, and with its form.

        Those who are or were asked, have decided or wanted the run see it, and whoever stands in for one of them; others need
        the capability `execution:read`, or one by which questions are handed on.
        """

        def read() -> FoundTask:
            instance, number = checked_step(task)
            looking = onlooker(self._desk)
            with self._desk.reader.look() as reader:
                found = found_task(self._desk, reader, instance, number)
            check_question(self._desk, looking, found)
            return found

        return self._desk.read_for(
            read,
            lambda found, desk: detailed(found, desk.request.actor),
            needs_roles=lambda found: found.task.guarded is not None,
            is_patient=not may_see_all(self._desk),
        )

    # -- decisions

    def approve(
        self,
        task: StepLike,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> Reply[None]:
        """Answer yes, in whatever word the definition has for it: in sagas `confirmed`. Otherwise it is like `decide`."""
        given = c.AnswerStep(step=0, vote="for", comment=comment, data=data, document_version=document_version)
        return self._answer(task, given, on_behalf_of, stage)

    def reject(
        self,
        task: StepLike,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> Reply[None]:
        """Answer no, in whatever word the definition has for it: in sagas `rejected`. Otherwise it is like `decide`."""
        given = c.AnswerStep(step=0, vote="against", comment=comment, data=data, document_version=document_version)
        return self._answer(task, given, on_behalf_of, stage)

    def abstain(
        self,
        task: StepLike,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> Reply[None]:
        """Answer neither yes nor no, where the step allows it. Otherwise it is like `decide`."""
        given = c.AnswerStep(step=0, vote="abstained", comment=comment, data=data, document_version=document_version)
        return self._answer(task, given, on_behalf_of, stage)

    def decide(
        self,
        task: StepLike,
        decision: str,
        *,
        comment: str = "",
        data: object = None,
        on_behalf_of: str = "",
        document_version: str = "",
        stage: str = "",
    ) -> Reply[None]:
        """Answer a step that waits for people; `task` is the question, the step, or the id that both give.

        `decision` is one of the outcomes that its definition names, in sagas `confirmed` or `rejected`; ForbiddenError if the actor
        is not asked, or lacks the capability that the step asks for. Where several are asked, the step goes on once they have agreed,
        or cannot any more. The steps behind find the answer under the name of the step: `status`, `decided_by`, `decided_at`, `comment`, as `data`
        what was given here, and as `decisions` what each of several decided. The same answer by the same person again does nothing;
        any other is refused.

        Whoever stands in for one of those who are asked, by a delegation in the directory, decides on their behalf; `on_behalf_of`
        says for whom, if there are several, or if the actor is asked too or has decided already; all calls that are about one's own
        part in a question take it. A deactivated person cannot decide.

        `document_version` is kept with the decision: the version of the document that the actor has seen and decides on.

        `stage` is the stage of an approval chain that the decision is for, as `HumanTask.stage` has it; a question that is given as it was
        listed names it. A decision for a stage that is over decides no other stage. Without a stage, an actor who has decided an earlier
        stage is answered as they were then.
        """
        answer = c.AnswerStep(step=0, outcome=decision, comment=comment, data=data, document_version=document_version)
        return self._answer(task, answer, on_behalf_of, stage)

    def decide_many(
        self,
        tasks: Sequence[StepLike | tuple[StepLike, str] | tuple[StepLike, str, str]],
        decision: str,
        *,
        comment: str = "",
        on_behalf_of: str = "",
    ) -> Reply[builtins.list[TaskOutcome]]:
        """Answer many questions in one word, each like `decide`, one after the other; what became of each, in their order.

        A question about a document or a stage of a chain is given as it was listed, or together with the version and the stage that were
        looked at. One that is refused keeps no other from being decided; at most 1,000 at once. It can be repeated: what was decided so
        already counts as decided, and no later stage is decided by it.
        """

        def act() -> builtins.list[TaskOutcome]:
            given: object = tasks
            if not isinstance(given, list | tuple) or len(given) > _MOST_AT_ONCE:
                raise PayloadError(f"tasks are a list of at most {_MOST_AT_ONCE} questions")
            checked_key(decision, "decision")
            checked_text(comment, "comment")
            return [self._outcome(each, decision, comment, on_behalf_of) for each in tasks]

        return self._desk.read(act)

    def _outcome(
        self,
        given: StepLike | tuple[StepLike, str] | tuple[StepLike, str, str],
        decision: str,
        comment: str,
        on_behalf_of: str,
    ) -> TaskOutcome:
        task, *seen = given if isinstance(given, tuple) else (given, getattr(given, "document_version", ""))
        version, stage = [*seen, ""][:2]
        name = getattr(task, "step_id", "") or str(task)
        answer = c.AnswerStep(step=0, outcome=decision, comment=comment, document_version=version)
        try:
            self._answer(task, answer, on_behalf_of, stage).result()
        except StandfastError as error:
            if error.retryable:
                raise
            return TaskOutcome(task=name, status="refused", code=_reason(error), detail=str(error))
        return TaskOutcome(task=name, status="decided", code="", detail="")

    def withdraw_decision(self, task: StepLike, reason: str = "", *, on_behalf_of: str = "") -> Reply[None]:
        """Take one's decision back, as long as the question is open, or in a document until the gate has used it; it stays in the history."""
        return self._do(
            task,
            lambda step: c.WithdrawDecision(step=step, reason=checked_text(reason, "reason")),
            on_behalf_of,
            have_decided,
        )

    # -- who decides

    def claim(self, task: StepLike, *, on_behalf_of: str = "") -> Reply[None]:
        """Take a question for oneself: nobody else can decide it then. Only one of those who are asked can do so."""
        return self._do(task, lambda step: c.ClaimTask(step=step), on_behalf_of)

    def release(self, task: StepLike, *, on_behalf_of: str = "") -> Reply[None]:
        """Give a question back that one has claimed; with the capability `task:reassign` also one that another has."""
        return self._do(task, lambda step: c.ReleaseTask(step=step), on_behalf_of)

    def delegate(self, task: StepLike, to: str, *, reason: str = "", on_behalf_of: str = "") -> Reply[None]:
        """Have another user decide in one's place; the decision bears both names. Refused to oneself, and in a circle."""
        return self._do(
            task,
            lambda step: c.DelegateTask(step=step, to=checked_key(to, "user"), reason=checked_text(reason, "reason")),
            on_behalf_of,
        )

    def reassign(self, task: StepLike, to: str, *, who: str = "", reason: str = "") -> Reply[None]:
        """Ask somebody else instead, a user or `role:<name>`; `who` says instead of whom, if several are asked.

        It takes the capability `task:reassign`; not if one takes back oneself what one has delegated, before it is decided.
        """
        return self._do(
            task,
            lambda step: c.ReassignTask(
                step=step,
                to=checked_key(to, "user or role"),
                who=checked_key(who, "user or role that is not asked any more", may_be_empty=True),
                reason=checked_text(reason, "reason"),
            ),
        )

    def add_approver(self, task: StepLike, person: str, *, weight: int = 1, reason: str = "") -> Reply[None]:
        """Ask somebody else as well, a user or `role:<name>`. It takes the capability `task:add_approver`."""

        def command(step: int) -> c.AddApprover:
            if not is_whole(weight, least=1, most=HEAVIEST) or isinstance(weight, bool):
                raise PayloadError(f"the weight must be a whole number from 1 to {HEAVIEST}, not {weight!r}")
            named = checked_key(person, "user or role")
            return c.AddApprover(step=step, person=named, weight=weight, reason=checked_text(reason, "reason"))

        return self._do(task, command)

    def escalate(self, task: StepLike, reason: str = "", *, on_behalf_of: str = "") -> Reply[None]:
        """Have a question escalate now, as it would by itself if nobody answered: by the next rung of its ladder, or to its last resort.

        Those who are asked can do so, and who wanted the run; anybody else needs the capability `task:escalate`. So does everybody
        where the next rung ends the question by an outcome, which those may not who may not decide it.
        """
        return self._do(
            task,
            lambda step: c.PutHigher(step=step, reason=checked_text(reason, "reason")),
            on_behalf_of,
            may_speak,
        )

    # -- what is said about it

    def comment(self, task: StepLike, text: str, *, on_behalf_of: str = "") -> Reply[None]:
        """Say something about a question, or answer one that was asked back: those who are asked can, and who wanted the run."""
        return self._do(task, lambda step: c.CommentTask(step=step, text=_said(text)), on_behalf_of, may_speak)

    def ask(self, task: StepLike, text: str, *, on_behalf_of: str = "") -> Reply[None]:
        """Ask back before one decides: the question is `info_requested` until somebody else comments on it, and can still be decided."""
        return self._do(
            task, lambda step: c.CommentTask(step=step, text=_said(text), is_question=True), on_behalf_of, may_speak
        )

    def withdraw(self, task: StepLike, reason: str = "", *, on_behalf_of: str = "") -> Reply[None]:
        """Take the question itself back: nobody decides any more, and the step is left by `withdrawn`, or else is rejected.

        Whoever wanted the run can do so; anybody else needs the capability `task:withdraw`. Where no way leads on from that, the run ends: then it
        takes the right to cancel the run too.
        """
        return self._do(
            task,
            lambda step: c.WithdrawTask(step=step, reason=checked_text(reason, "reason")),
            on_behalf_of,
            requester_of,
        )

    # -- how

    @property
    def _me(self) -> str:
        actor = self._desk.request.actor
        return actor.on_behalf_of or actor.id

    def _answer(self, task: StepLike, given: c.AnswerStep, on_behalf_of: str, stage: str) -> Reply[None]:
        holds = not self._desk.service.shared.settings.auto_resume_after_approval

        def command(step: int) -> c.AnswerStep:
            if given.vote is None:
                checked_key(given.outcome, "decision")
            checked_text(given.comment, "comment")
            checked_key(given.document_version, "document version", may_be_empty=True)
            seen = checked_key(stage, "stage", may_be_empty=True) or (task.stage if isinstance(task, HumanTask) else "")
            data = plain(given.data, what="data", limit=self._desk.payload_limit)
            return replace(given, step=step, data=data, holds=holds, stage=seen)

        return self._do(task, command, on_behalf_of, comment=given.comment)

    def _do(
        self,
        task: StepLike,
        made: Callable[[int], Acted],
        on_behalf_of: str = "",
        concerned: Concerned = asked_at,
        *,
        comment: str = "",
    ) -> Reply[None]:
        """Have a command about a question decided, for whoever the actor is in this matter."""
        try:
            instance, number = checked_step(task)
            command = made(number)
        except StandfastError as error:
            return failed(error)
        return on_question(
            self._desk, instance, command, on_behalf_of=on_behalf_of, concerned=concerned, comment=comment
        )


def _reason(error: StandfastError) -> str:
    """The stable word for why something was refused."""
    return str(getattr(error, "reason", "") or error.code)


def _said(text: object) -> str:
    said = checked_text(text, "comment")
    if not said.strip():
        raise PayloadError("a comment says something; give a text that is not empty")
    return said
