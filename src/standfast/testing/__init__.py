"""The public test kit: the real engine with a manual clock, specifications of deciders, and crash tests."""

from standfast.testing.crashes import CrashReport, CrashScenario, crash_everywhere
from standfast.testing.manual import ManualEngine
from standfast.testing.specification import Given, StoredState, Then, given

__all__ = ["CrashReport", "CrashScenario", "Given", "ManualEngine", "StoredState", "Then", "crash_everywhere", "given"]
