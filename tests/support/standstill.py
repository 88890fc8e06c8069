"""Stopping a process (SIGSTOP) at a moment at which all others can go on without it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess

import psycopg

from support.waiting import eventually

_SESSIONS = """
    select state from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
"""


def stop_between_transactions(process: subprocess.Popen[bytes], url: str) -> None:
    """Stop a process while it has no transaction open: a sleeper would keep the locks of one for as long as it sleeps.

    The signal alone is not enough: threads go on until each of them meets it, and any of them may begin a transaction until then.
    """
    _stop(process)
    while not _is_at_rest(url):
        process.send_signal(signal.SIGCONT)
        eventually(lambda: _is_at_rest(url))  # It must get far enough to end its transaction before the next attempt.
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # The parent is told when the last thread has stopped.


def _is_at_rest(url: str) -> bool:
    if url.startswith("sqlite:///"):
        return _is_file_free(url.removeprefix("sqlite:///"))
    with psycopg.connect(url, autocommit=True) as connection:
        return eventually(lambda: _resting(connection)) == "between transactions"


def _is_file_free(path: str) -> bool:
    """Whether the file takes a writing transaction now."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        connection.execute("begin immediate")
        connection.execute("rollback")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def _resting(connection: psycopg.Connection) -> str:
    """How the sessions of the server rest; nothing while one of them still works on what it was sent."""
    states = {state for (state,) in connection.execute(_SESSIONS)}
    if "active" in states:
        return ""
    return "between transactions" if states <= {"idle"} else "inside a transaction"
