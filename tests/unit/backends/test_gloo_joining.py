"""Forming a group on Gloo, by a process on its own."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from rankbridge_server.backends.gloo import GlooBackend
from rankbridge_server.backends.gloo.address import cleaned, port_of
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError, ErrorCode

PAIR = GroupDescription("pair", (0, 1))


def test_an_address_that_was_abandoned_does_no_harm() -> None:
    joining = GlooBackend(connect_timeout=0.2).join(PAIR, 0, 1)
    joining.abandon()
    with pytest.raises(BridgeError) as error:
        joining.connect([joining.address], 30)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED


def test_a_host_name_that_is_not_this_hosts_is_an_error() -> None:
    with pytest.raises(BridgeError) as error:
        GlooBackend("192.0.2.1").join(PAIR, 0, 1)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED
    assert "192.0.2.1" in error.value.failure.message


def test_a_group_of_one_needs_nobody() -> None:
    joining = GlooBackend().join(GroupDescription("alone", (0,)), 0, 1)
    coordinator = joining.connect([joining.address], 30)
    coordinator.barrier(5)
    coordinator.close()


def test_nobody_else_connects_to_a_group_that_is_formed() -> None:
    backend = GlooBackend()
    joinings = [backend.join(PAIR, place, 1) for place in (0, 1)]
    addresses = [joining.address for joining in joinings]
    ports = [port_of(address, 2) for address in addresses]
    with socket.create_connection(("127.0.0.1", ports[0] or 0), timeout=5):
        # As the other members do, while it is formed.
        pass
    with ThreadPoolExecutor() as pool:
        pair = list(pool.map(lambda joining: joining.connect(addresses, 30), joinings))
        for port in ports:
            with pytest.raises(TimeoutError):
                socket.create_connection(("127.0.0.1", port or 0), timeout=0.3)
        list(pool.map(lambda member: member.barrier(5), pair))
    for member in pair:
        member.close()


def test_an_address_tells_nothing_of_the_process_that_made_it() -> None:
    joining = GlooBackend().join(PAIR, 0, 1)
    # All but the host's name, the family, port and IP address, and how long everything is.
    host = socket.gethostname().encode()
    shown = bytearray(joining.address)
    assert shown[8 : 8 + len(host)] == host
    padding = shown[16 + len(host) + 8 : 16 + len(host) + 128]
    assert padding == bytes(len(padding))
    joining.abandon()


def test_what_is_no_address_is_refused_before_gloo_reads_it() -> None:
    joining = GlooBackend(connect_timeout=0.2).join(PAIR, 0, 1)
    own = joining.address
    host = int.from_bytes(own[:8], "little")
    flipped = [
        own[:place] + bytes([own[place] ^ 1 << bit]) + own[place + 1 :]
        for place in range(len(own))
        for bit in range(8)
    ]
    cut = [own[:length] for length in range(len(own))]
    grown = [own + bytes(more) for more in range(1, 64)]
    refused = 0
    for mutated in flipped + cut + grown:
        try:
            taken = cleaned(mutated, 2)
        except BridgeError:
            refused += 1
        else:
            # Its host's name, which is for people, or where it leads; a family may become the other.
            changed = {place for place, (a, b) in enumerate(zip(own, taken, strict=True)) if a != b}
            assert changed <= {*range(8, 8 + host), *range(16 + host, 16 + host + 8)}
    assert refused > len(cut) + len(grown)
    with pytest.raises(BridgeError) as error:
        joining.connect([own, b""], 5)
    assert error.value.failure.code is ErrorCode.FORMING_FAILED
