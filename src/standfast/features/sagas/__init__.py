"""Sagas: steps in a row, each with what undoes it; forks, conditions, people and waits in between."""

from standfast.features.sagas.builder import Branch, Saga, task
from standfast.features.sagas.definition import SagaDefinition, StepDefinition
from standfast.features.sagas.human_tasks import AskOptions, ask
from standfast.features.sagas.options import StepOptions, handler
from standfast.features.sagas.task_options import Escalation, TaskOptions
from standfast.features.sagas.waits import event

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
