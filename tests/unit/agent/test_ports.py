"""Ports that are held for ranks."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rankbridge_server.agent.ports import HeldPort, held_ports


@pytest.fixture
def port() -> Iterator[HeldPort]:
    with held_ports(1) as (port,):
        yield port


def at(port: HeldPort) -> tuple[str, int]:
    assert port.address.port is not None
    return port.address.host, port.address.port


def test_each_port_is_another() -> None:
    with held_ports(20) as ports:
        assert len({it.address for it in ports}) == 20


def test_who_connects_is_refused(port: HeldPort) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(at(port))


def test_one_after_the_other_may_listen_there(port: HeldPort) -> None:
    for _ in range(2):
        with socket.create_server(at(port)) as listening:
            with pytest.raises(OSError, match="in use"):
                socket.create_server(at(port))
            with socket.create_connection(at(port)) as connection, listening.accept()[0] as accepted:
                accepted.sendall(b"mine")
                assert connection.recv(4) == b"mine"


def test_nobody_else_has_it_meanwhile(port: HeldPort) -> None:
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(at(port))


def test_afterwards_it_is_free() -> None:
    with held_ports(1) as (port,):
        pass
    with socket.socket() as other:
        other.bind(at(port))
