"""Helper processes of the host that must not outlive the one that started them.

Owns: `end_with_parent`.
Invariant: after it was called, no end of the parent, `kill -9` among them, leaves this process behind.
Must not know: what the process does, boxes (those have an owner on record, see `ownership`).
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """In a process that `multiprocessing` started: the kernel kills it when the thread that started it ends.

    That also ends it where it is stuck in native code, or stopped; the end of a pipe would not.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # it ended before, and the kernel will not tell
        os.kill(os.getpid(), signal.SIGKILL)
