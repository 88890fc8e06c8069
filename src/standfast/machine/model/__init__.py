"""The state of a run: rejections, messages, document and task state."""
