"""Values in nodes: forms, approver rules, calendars and handler calls."""
