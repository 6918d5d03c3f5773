"""A client shows no token to another host without TLS, unless it is told to."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

import rankbridge
from rankbridge._transport.tokens import check_near
from rankbridge.errors import InvalidArgumentError

FAR = "192.0.2.7:50051"


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and addresses as a resolver would give them, without a network."""
    known = {"localhost": ["127.0.0.1", "::1"], "mixed": ["127.0.0.1", "192.0.2.7"], "far": ["192.0.2.7"]}

    def found(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "nobody":
            raise socket.gaierror
        return [(0, 0, 0, "", (it, 0)) for it in known.get(host, [host])]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.delenv("RANKBRIDGE_INSECURE_TOKEN", raising=False)


@pytest.mark.parametrize(
    "target",
    [
        *("127.0.0.1:1", "127.5.6.7:1", "[::1]:1", "ipv4:127.0.0.1:1", "ipv6:[::1]:1", "localhost:1"),
        *("dns:///localhost:1", "unix:/run/rank-0", "unix-abstract:rank", "nobody:1"),
    ],
)
def test_this_host_is_near(target: str) -> None:
    check_near([target])


@pytest.mark.parametrize(
    "target", [FAR, f"ipv4:{FAR}", "[2001:db8::7]:1", "far:1", "dns:///far:1", "mixed:1"]
)
def test_another_host_is_not(target: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match="in plain text: use tls, or insecure_token=True"
    ) as caught:
        check_near(["127.0.0.1:1", target])
    assert target in str(caught.value)


def test_a_program_may_say_that_it_trusts_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBRIDGE_INSECURE_TOKEN", "1")
    check_near([FAR])


def test_nothing_is_sent_to_who_may_not_hear_it() -> None:
    async def opened() -> None:
        await rankbridge.aconnect([FAR], token="t" * 43, timeout=0.1)

    with pytest.raises(InvalidArgumentError, match="in plain text"):
        rankbridge.connect([FAR], token="t" * 43, timeout=0.1)
    with pytest.raises(InvalidArgumentError, match="in plain text"):
        asyncio.run(opened())


def test_who_insists_or_has_no_token_connects() -> None:
    with pytest.raises(rankbridge.UnavailableError):
        rankbridge.connect(["nobody:1"], timeout=0.2, token="t" * 43, insecure_token=True)
    with pytest.raises(rankbridge.UnavailableError):
        rankbridge.connect(["nobody:1"], timeout=0.2)
