"""The connections of one group on Gloo: they are found among others, and end when the group does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from rankbridge.harness.usage import until
from rankbridge_server.backends.gloo import GlooBackend
from rankbridge_server.backends.gloo.address import endpoint_of
from rankbridge_server.backends.gloo.sockets import Endpoint, GroupSockets, is_connection, tcp_sockets
from rankbridge_server.core.coordinator import Coordinator, GroupDescription

SECONDS = 30


class Pair:
    """The two members of a group, in one process."""

    def __init__(self) -> None:
        joinings = [GlooBackend().join(GroupDescription("pair", (0, 1)), place, 1) for place in (0, 1)]
        addresses = [it.address for it in joinings]
        self.endpoints = [it for address in addresses if (it := endpoint_of(address, 2))]
        with ThreadPoolExecutor() as pool:
            made = pool.map(lambda it: it.connect(addresses, SECONDS), joinings)
            self.members: list[Coordinator] = list(made)

    def connections(self) -> int:
        """How many ends of connections there are that work."""
        return count(self.endpoints)


def count(endpoints: list[Endpoint]) -> int:
    found = 0
    for _, it in tcp_sockets():
        try:
            found += is_connection(it, endpoints, endpoints)
        except OSError:
            # One that was hung up has no peer.
            continue
    return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    for member in made.members:
        member.close()


def test_a_group_that_ends_hangs_up_before_gloo_takes_it_down(pair: Pair) -> None:
    assert pair.connections() == 2
    # Gloo closes none of its sockets while somebody has the group.
    kept = [it._group for it in pair.members]  # type: ignore[attr-defined]
    pair.members[0].close()
    assert until(lambda: pair.connections() == 0, SECONDS)
    assert None not in kept


def test_a_group_that_ends_while_a_member_is_inside_lets_it_finish(pair: Pair) -> None:
    first, second = pair.members
    with ThreadPoolExecutor() as pool:
        inside = pool.submit(first.barrier, SECONDS)
        assert until(lambda: bool(first._entered), SECONDS)  # type: ignore[attr-defined]
        first.close()
        assert pair.connections() == 2
        second.barrier(SECONDS)
        inside.result(SECONDS)


def test_only_the_groups_own_connections_are_hung_up() -> None:
    with ExitStack() as stack:

        def listening() -> socket.socket:
            return stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def connected(to: socket.socket) -> tuple[socket.socket, socket.socket]:
            dialled = stack.enter_context(socket.create_connection(to.getsockname()))
            return dialled, stack.enter_context(to.accept()[0])

        own, peer, stranger = listening(), listening(), listening()
        accepted, dialled, others = connected(own), connected(peer), connected(stranger)
        found = GroupSockets(own.getsockname(), [peer.getsockname(), ("127.0.0.1", 1)])
        # One of its descriptors is another's by the time of the end.
        os.dup2(others[0].fileno(), accepted[1].fileno())
        found.hang_up()
        dialled[1].settimeout(SECONDS)
        assert dialled[1].recv(1) == b""
        others[0].sendall(b"on")
        others[1].settimeout(SECONDS)
        assert others[1].recv(2) == b"on"
        peer.settimeout(SECONDS)
        assert connected(peer)
