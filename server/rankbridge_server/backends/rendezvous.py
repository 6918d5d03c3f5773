"""How ranks that a launcher started find each other: torch's store, for one exchange and no longer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import TCPStore


def exchange(
    host: str, port: int, serve: bool, prefix: str, rank: int, world_size: int, mine: str, timeout: float
) -> list[str]:
    """Gives all ranks' data, by rank, when all have it. Raises TimeoutError.

    `serve`: this rank runs the store; no other may, and none when the launcher runs it. `prefix`: keeps attempts of
    one launcher apart. `timeout` in seconds for each step.
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
        given = [store.get(f"{prefix}/given/{other}").decode() for other in range(world_size)]
        _all_have_it(store.add, f"{prefix}/read", world_size, lambda: store.set(f"{prefix}/done", "1"))
        store.get(f"{prefix}/done")
        if not serve:
            _all_have_it(
                store.add, f"{prefix}/leaving", world_size - 1, lambda: store.set(f"{prefix}/left", "1")
            )
        elif world_size > 1:
            # The server must outlive the others' last answer: they say when they have it.
            store.get(f"{prefix}/left")
    except RuntimeError as error:
        raise TimeoutError(f"ranks did not meet at {host}:{port}: {error}") from error
    return given


def _all_have_it(add: Callable[[str, int], int], key: str, count: int, last: Callable[[], None]) -> None:
    if add(key, 1) == count:
        last()
