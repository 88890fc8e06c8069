"""JSON logs for the user's own programs; commands write them with `--log-format json`."""

from __future__ import annotations

from standfast.app.logs import JsonFormatter, log_json

__all__ = ["JsonFormatter", "log_json"]
