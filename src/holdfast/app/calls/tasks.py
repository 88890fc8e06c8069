"""Calls of people: the questions that wait for them, and their answers."""

from __future__ import annotations

import builtins

from holdfast.app import workflow_views as views
from holdfast.app.authorities import on_question
from holdfast.app.desk import Desk, checked_key, checked_limit, checked_text, failed, nothing
from holdfast.app.references import StepLike, checked_step
from holdfast.app.step_handlers import plain
from holdfast.errors import HoldfastError
from holdfast.kernel.records import TaskPlace
from holdfast.machine.runs import commands as c
from holdfast.runtime.replies import Reply
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address


class FutureTasks:
    """What can be asked of steps that wait for people. Who answers is the actor of these calls (`acting`)."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def list(
        self, *, role: str | None = None, after: views.HumanTask | None = None, limit: int = 100
    ) -> Reply[builtins.list[views.HumanTask]]:
        """All questions that wait for an answer, oldest first; give the last one as `after` for the next page.

        Those of one run, answered ones included, are asked of the run.
        """

        def read(reader: Reader) -> list[views.HumanTask]:
            last = None if after is None else TaskPlace(after.asked_at, after.instance, after.step_number)
            asked = None if role is None else checked_text(role, "role")
            found = reader.open_tasks(role=asked, after=last, limit=checked_limit(limit))
            return [views.human_task(each) for each in found]

        return self._desk.look(read)

    def approve(self, task: StepLike, *, comment: str = "", data: object = None) -> Reply[None]:
        """Answer yes: the short way of `decide(task, "confirmed")`."""
        return self.decide(task, "confirmed", comment=comment, data=data)

    def reject(self, task: StepLike, *, comment: str = "", data: object = None) -> Reply[None]:
        """Answer no: the short way of `decide(task, "rejected")`."""
        return self.decide(task, "rejected", comment=comment, data=data)

    def decide(
        self, task: StepLike, decision: str, *, comment: str = "", data: object = None, on_behalf_of: str = ""
    ) -> Reply[None]:
        """Answer a step that waits for a person; `task` is the question, the step, or the id that both give.

        `decision` is one of the outcomes that its definition names, in sagas `confirmed` or `rejected`; ForbiddenError if the actor
        lacks the role or the capability that the step asks for. The steps behind find the answer under the name of the step: `status`, `decided_by`, `decided_at`, `comment`, and as `data`
        what was given here. The same answer by the same person again does nothing; any other is refused.

        Whoever stands in for one of those who are asked, by a delegation in the directory, decides on their behalf; `on_behalf_of`
        says for whom, if there are several. A deactivated person cannot decide.
        """
        try:
            instance, number = checked_step(task)
            checked_key(decision, "decision")
            checked_text(comment, "comment")
            given = plain(data, what="data", limit=self._desk.payload_limit)
        except HoldfastError as error:
            return failed(error)
        holds = not self._desk.service.shared.settings.auto_resume_after_approval
        command = c.AnswerStep(step=number, outcome=decision, comment=comment, data=given, holds=holds)
        address = Address(tenant=self._desk.tenant, instance=instance)
        return on_question(
            self._desk,
            instance,
            number,
            lambda desk: desk.command(address, command, nothing, comment=comment, may_create=False),
            on_behalf_of=on_behalf_of,
        )
