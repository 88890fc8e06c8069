"""Runs that are played without a database: the stage, what is supposed of the world on it, and which way a run would take."""

from __future__ import annotations

from standfast.authoring.rehearsal.dry_run import DryRun, Ending, Terms, Walk, dry_run
from standfast.authoring.rehearsal.passages import EndlessError, Passage
from standfast.authoring.rehearsal.script import Script
from standfast.authoring.rehearsal.stage import MOST_COMMANDS, Rehearsal

__all__ = [
    "MOST_COMMANDS",
    "DryRun",
    "Ending",
    "EndlessError",
    "Passage",
    "Rehearsal",
    "Script",
    "Terms",
    "Walk",
    "dry_run",
]
