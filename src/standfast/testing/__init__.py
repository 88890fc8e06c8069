"""The public test kit: the real engine with a clock of the test's own, words for testing deciders, and crashes on demand."""

from standfast.testing.crashes import CrashReport, CrashScenario, crash_everywhere
from standfast.testing.manual import ManualEngine
from standfast.testing.specification import Given, StoredState, Then, given

__all__ = ["CrashReport", "CrashScenario", "Given", "ManualEngine", "StoredState", "Then", "crash_everywhere", "given"]
