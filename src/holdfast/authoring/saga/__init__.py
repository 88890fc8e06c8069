"""Sagas: steps in a row, each with what undoes it; forks, conditions, people and waits in between."""

from holdfast.authoring.saga.builder import Branch, Saga, task
from holdfast.authoring.saga.definition import SagaDefinition, StepDefinition
from holdfast.authoring.saga.options import StepOptions, handler
from holdfast.authoring.saga.questions import AskOptions, ask

__all__ = ["AskOptions", "Branch", "Saga", "SagaDefinition", "StepDefinition", "StepOptions", "ask", "handler", "task"]
