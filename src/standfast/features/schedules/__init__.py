"""Schedules of workflows."""
