"""Gloo that waits for a member which does not come is ended by this process alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from torch._C import _distributed_c10d as c10d

from rankbridge_server.backends.gloo.address import port_of
from rankbridge_server.backends.gloo.connections import Connections

SECONDS = 30


class Store(c10d.Store):
    """Notes what goes in and out, and calls `asked` before it gives a member's address, or waits for it."""

    def __init__(self, store: c10d.Store, connections: Connections, asked: Callable[[str], None]) -> None:
        super().__init__()
        # Torch's stubs say that values are text.
        self._store: Any = store
        self._connections = connections
        self._asked = asked

    def set(self, key: str, value: str | bytes) -> None:
        assert isinstance(value, bytes)
        self._connections.seen(value, True)
        self._store.set(key, value)

    def get(self, key: str) -> bytes:
        self._asked(key)
        value = bytes(self._store.get(key))
        self._connections.seen(value, False)
        return value

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        for key in keys:
            self._asked(key)
        self._store.wait(list(keys), timeout or timedelta(seconds=SECONDS))


def group(store: c10d.Store, rank: int) -> c10d.ProcessGroupGloo:
    return c10d.ProcessGroupGloo(store, rank, 2, timedelta(seconds=SECONDS))


def give_up(key: str) -> None:
    raise ConnectionAbortedError(f"gives up before {key}")


def with_port(address: bytes, port: int) -> bytes:
    """The address with another port, which decides who of the two connects."""
    old = port_of(address, 2)
    assert old is not None
    return address.replace(old.to_bytes(2, "big"), port.to_bytes(2, "big"), 1)


@pytest.mark.parametrize("port", [1, 65535], ids=["lower", "higher"])
def test_a_member_that_has_given_up_is_not_waited_for(port: int) -> None:
    store, connections = c10d.HashStore(), Connections()
    given: dict[str, bytes] = {}

    class Given(Store):
        def set(self, key: str, value: str | bytes) -> None:
            assert isinstance(value, bytes)
            given[key] = with_port(value, port)
            self._store.set(key, given[key])

    with pytest.raises(ConnectionAbortedError, match="gives up"):
        group(Given(store, Connections(), give_up), 1)
    assert given

    has_addresses, is_over, errors = threading.Event(), threading.Event(), list[str]()

    def asked(key: str) -> None:
        if key in given:
            has_addresses.set()

    def make() -> None:
        try:
            made: Any = group(Store(store, connections, asked), 0)
            # It may have found the other member's stand-in, which hangs up.
            made.barrier().wait()
        except RuntimeError as error:
            errors.append(str(error))
        finally:
            is_over.set()

    making = threading.Thread(target=make, daemon=True)
    making.start()
    assert has_addresses.wait(SECONDS)
    connections.stop(is_over)
    making.join()
    assert len(errors) == 1
