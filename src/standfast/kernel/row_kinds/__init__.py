"""The declared rows: steps, tasks, documents, events, schedules."""
