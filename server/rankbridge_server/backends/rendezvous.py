"""One exchange over torch's store, by which ranks of a launcher find each other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import TCPStore


def exchange(
    host: str, port: int, serve: bool, prefix: str, rank: int, world_size: int, mine: str, timeout: float
) -> list[str]:
    """Returns all ranks' data, by rank, when all ranks have it. Raises TimeoutError.

    `serve`: this rank runs the store; exactly one rank does, or none if the launcher runs it. `prefix`: unique for each
    attempt of a launcher. `timeout`: seconds for each step.
    """
    try:
        store = TCPStore(
            host,
            port,
            world_size,
            serve,
            timedelta(seconds=timeout),
            wait_for_workers=False,
            multi_tenant=True,
        )
        store.set(f"{prefix}/given/{rank}", mine)
        values = [store.get(f"{prefix}/given/{other}").decode() for other in range(world_size)]
        _count_to(store.add, f"{prefix}/read", world_size, lambda: store.set(f"{prefix}/done", "1"))
        store.get(f"{prefix}/done")
        if not serve:
            _count_to(
                store.add, f"{prefix}/leaving", world_size - 1, lambda: store.set(f"{prefix}/left", "1")
            )
        elif world_size > 1:
            # The server must outlive the last answer to the others, who confirm it.
            store.get(f"{prefix}/left")
    except RuntimeError as error:
        raise TimeoutError(f"ranks did not meet at {host}:{port}: {error}") from error
    return values


def _count_to(add: Callable[[str, int], int], key: str, count: int, last: Callable[[], None]) -> None:
    if add(key, 1) == count:
        last()
