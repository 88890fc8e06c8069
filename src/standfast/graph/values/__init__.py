"""What nodes hold: forms, approver rules, calendars, handler calls."""
