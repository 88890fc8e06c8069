"""Sagas: steps in a row, each with what undoes it; forks, conditions, people and waits in between."""
