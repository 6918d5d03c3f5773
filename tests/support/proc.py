"""What the kernel tells of a process while it goes on: what it had a moment ago may be gone when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def open_files(pid: int | str = "self") -> list[str]:
    """What each of its file descriptors stands for: a path, or a kind and a number, as `socket:[7]`."""
    return list(_open_files(pid))


def _open_files(pid: int | str) -> Iterator[str]:
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(fd.readlink())


def thread_names(pid: int | str = "self") -> dict[int, str]:
    """Name of each of its threads by number."""
    return {thread: text.strip() for thread, text in _of_each_thread(pid, "comm")}


def thread_states(pid: int | str = "self") -> set[str]:
    """In what state its threads are: "T" is stopped."""
    return {text.rpartition(")")[2].split()[0] for _, text in _of_each_thread(pid, "stat")}


def _of_each_thread(pid: int | str, what: str) -> Iterator[tuple[int, str]]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        # One that ends between opening and reading has no entry any more.
        with suppress(FileNotFoundError, ProcessLookupError):
            yield int(task.name), (task / what).read_text()
