"""The end of a link, however the other side ends."""

from __future__ import annotations

import socket

import pytest

from rankbridge_server.links.link import Link


@pytest.mark.parametrize("unread", [b"", b"something"])
def test_a_link_ends_in_one_way(unread: bytes) -> None:
    """With something left to read, the kernel resets a unix socket when its process is killed."""
    mine, other = socket.socketpair()
    with mine:
        mine.sendall(unread)
        other.close()
        with pytest.raises(ConnectionError) as raised:
            Link(mine).receive()
    assert str(raised.value) == "its link was closed"
