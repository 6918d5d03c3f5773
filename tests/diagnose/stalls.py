"""What a rank may do instead of calling the next collective. Each goes on until the job is ended."""

from __future__ import annotations

import ctypes
import fcntl
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LONG_S = 1000


def asleep() -> None:
    """A sleep that is much too long."""
    time.sleep(LONG_S)


def endless_loop() -> None:
    """A loop whose condition never comes true."""
    done = 0
    while done >= 0:
        done = done + 1


def pipe() -> None:
    """A read of a pipe into which nobody writes."""
    reader, _ = os.pipe()
    os.read(reader, 1)


def socket_read() -> None:
    """A read of a socket of which the other side is silent."""
    mine, _theirs = socket.socketpair()
    mine.recv(1)


def locks() -> None:
    """Two threads, each of which has the lock that the other wants."""
    first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def other() -> None:
        with second:
            both.wait()
            with first:
                pass

    threading.Thread(target=other, daemon=True).start()
    with first:
        both.wait()
        with second:
            pass


def empty_queue() -> None:
    """A queue that nobody fills."""
    queue.Queue[int]().get()


def event() -> None:
    """An event that nobody sets."""
    threading.Event().wait()


def gil() -> None:
    """A call into C that sleeps, and holds Python's lock."""
    ctypes.PyDLL(None).sleep(LONG_S)


def gil_in_thread() -> None:
    """Another thread sleeps in C and holds Python's lock."""
    threading.Thread(target=gil, daemon=True, name="holder").start()
    time.sleep(LONG_S)


def stopped() -> None:
    """SIGSTOP."""
    os.kill(os.getpid(), signal.SIGSTOP)


def child() -> None:
    """A program that does not end."""
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LONG_S})"]) as process:
        process.wait()


def file_lock() -> None:
    """A lock of a file that another open file has."""
    path = Path(os.environ["DIAGNOSE_FOLDER"]) / "lock"
    with path.open("w") as first, path.open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)


def prompt() -> None:
    """A debugger's prompt that nobody sees."""
    reader, _ = os.pipe()
    os.dup2(reader, 0)
    input("(Pdb) ")


def loader() -> None:
    """A loader of data whose worker does not deliver."""
    from torch.utils.data import DataLoader, IterableDataset

    class Stuck(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            time.sleep(LONG_S)
            yield 0

    next(iter(DataLoader(Stuck(), num_workers=1, timeout=0)))


def store() -> None:
    """A key of the store that nobody sets."""
    import torch.distributed as dist

    dist.distributed_c10d._get_default_store().get("nobody sets this")


STALLS: dict[str, Callable[[], None]] = {
    it.__name__: it
    for it in (
        asleep, endless_loop, pipe, socket_read, locks, empty_queue, event, gil, gil_in_thread, stopped, child,
        file_lock, prompt, loader, store,
    )
}  # fmt: skip
