"""Becomes another program that cannot outlive its parent, under an account that may be another one.

    python -I -S lifeline.py PARENT_PID UID GID PROGRAM [ARGUMENT ...]

This is a script of its own, not a `preexec_fn`: Python code between fork and exec can deadlock in a process that has
threads. It also means that the account needs no access to the Python interpreter, only to the program. It uses the
standard library alone and knows nothing about Postgres.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Change the account, tie the process to its parent, become the program."""
    parent, uid, gid, *command = arguments
    take_account(int(uid), int(gid))
    tie_to_parent(int(parent))
    os.execv(command[0], command)  # noqa: S606 - the caller names the program by its full path


def take_account(uid: int, gid: int) -> None:
    """Give up root and all its groups for good; does nothing when this is the account already."""
    if os.geteuid() == uid:
        return
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def tie_to_parent(parent: int) -> None:
    """Ask Linux for SIGQUIT when the parent ends; the wish survives exec, but not a change of account.

    The parent may have ended before the wish was heard: then nobody is left to stop the program, and it must not start.
    """
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit("the parent has ended")


if __name__ == "__main__":
    main(sys.argv[1:])
