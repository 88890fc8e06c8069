"""Sagas: steps in a row, each with what undoes it; forks, conditions, people and waits in between."""

from standfast.authoring.saga.builder import Branch, Saga, task
from standfast.authoring.saga.definition import SagaDefinition, StepDefinition
from standfast.authoring.saga.options import StepOptions, handler
from standfast.authoring.saga.questions import AskOptions, ask
from standfast.authoring.saga.task_options import Escalation, TaskOptions
from standfast.authoring.saga.waits import event

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
