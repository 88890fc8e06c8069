"""The built-in kinds of rows: steps, tasks, documents, events, processes and schedules."""
