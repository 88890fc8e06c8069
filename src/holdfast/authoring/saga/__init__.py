"""Sagas: steps in a row, each with what undoes it; forks, conditions, people and waits in between."""

from holdfast.authoring.saga.builder import Branch, Saga, task
from holdfast.authoring.saga.definition import SagaDefinition, StepDefinition
from holdfast.authoring.saga.options import StepOptions, handler
from holdfast.authoring.saga.questions import AskOptions, ask
from holdfast.authoring.saga.task_options import Escalation, TaskOptions
from holdfast.authoring.saga.waits import event

__all__ = [
    "AskOptions",
    "Branch",
    "Escalation",
    "Saga",
    "SagaDefinition",
    "StepDefinition",
    "StepOptions",
    "TaskOptions",
    "ask",
    "event",
    "handler",
    "task",
]
