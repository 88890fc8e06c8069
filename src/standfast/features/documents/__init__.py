"""Create, edit and redact documents; webhooks; documents held elsewhere."""
