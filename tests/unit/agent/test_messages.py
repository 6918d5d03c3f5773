"""What an agent and its ranks say to each other."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rankbridge_server.agent.messages import Form, Formed, Line, Message, Ping, Pong, Ready, Suspect


@pytest.fixture
def ends() -> Iterator[tuple[Line, Line]]:
    ours, theirs = (Line(end) for end in socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_come_out_as_they_went_in(ends: tuple[Line, Line]) -> None:
    said: list[Message] = [
        Ready(["unix:/a", "127.0.0.1:1"]),
        Form(["unix:/a"], 2.5),
        Formed(3, 0.5),
        Ping(),
        Pong(),
        Suspect(),
    ]
    for message in said:
        ends[0].send(message)
        assert ends[1].receive() == message


def test_messages_that_come_together_are_all_heard(ends: tuple[Line, Line]) -> None:
    said: list[Message] = [Suspect(), Pong(), Pong()]
    for message in said:
        assert ends[0].try_send(message)
    assert ends[1].receive_all() == said


def test_half_a_message_is_kept_until_the_rest_comes() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        line = Line(theirs)
        ours.sendall(b'["Ping", {}]\n["Po')
        assert line.receive_all() == [Ping()]
        ours.sendall(b'ng", {}]\n')
        assert line.receive() == Pong()
        line.close()


def test_an_end_that_is_gone_is_seen_and_not_waited_for(ends: tuple[Line, Line]) -> None:
    ends[0].close()
    assert ends[1].receive() is None
    assert ends[1].receive_all() is None
    assert not ends[1].try_send(Ping())


def test_a_line_that_nobody_reads_does_not_block(ends: tuple[Line, Line]) -> None:
    long = Ready(["x" * 65536])
    for _ in range(1000):
        if not ends[0].try_send(long):
            return
    pytest.fail("a thousand messages fit where nobody reads")
