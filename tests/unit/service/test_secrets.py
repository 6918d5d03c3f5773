"""The secret of a generation's links: who hears the commit over TCP does not know it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.local_gang import LocalGang

from rankbridge_server.core.tokens import Tokens
from rankbridge_server.links.sockets import SocketLinkMaker, SocketLinks
from rankbridge_server.service.gang import Dialling, GrpcPeer, form_gang
from rankbridge_server.service.server import Server


def formed_with(
    monkeypatch: pytest.MonkeyPatch, path: Path, kind: int, tokens: Sequence[Tokens | None]
) -> tuple[bytes, set[bytes]]:
    """Forms two ranks with these tokens by unix sockets (0) or TCP (1). Gives what was sent, and the links' secrets."""
    sent: list[bytes] = []
    commit = GrpcPeer.commit

    def heard(self: GrpcPeer, number: int, addresses: Any, secret: bytes, timeout: float) -> None:
        sent.append(secret)
        commit(self, number, addresses, secret, timeout)

    monkeypatch.setattr(GrpcPeer, "commit", heard)
    gang = LocalGang(2, links=lambda rank: SocketLinkMaker("127.0.0.1:0"))
    with ExitStack() as stack:
        targets = []
        for rank, its in zip(gang.ranks, tokens, strict=True):
            own = None if its is None else (lambda its=its: its)
            server = Server(rank, [f"unix:{path}/{rank.identity.rank}", "127.0.0.1:0"], 16, tokens=own)
            server.start()
            stack.callback(server.stop, 0)
            targets.append(server.endpoints[kind])
        first = tokens[0]
        form_gang(targets, (), 20.0, dialling=Dialling(None, None if first is None else lambda: first.peer))
        found = set()
        for rank in gang.ranks:
            links = rank._current(0).links
            assert isinstance(links, SocketLinks)
            found.add(links._secret)
        for rank in gang.ranks:
            rank.close("the test is over")
    (one,) = set(sent)
    return one, found


def test_over_tcp_the_secret_is_derived(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tokens = Tokens.new()
    sent, secrets = formed_with(monkeypatch, tmp_path, 1, [tokens, tokens])
    assert secrets == {tokens.secret_of(sent)} != {sent}


@pytest.mark.parametrize("kind", [0, 1])
def test_ranks_without_tokens_take_it_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: int
) -> None:
    sent, secrets = formed_with(monkeypatch, tmp_path, kind, [None, None])
    assert secrets == {sent}


def test_ranks_of_two_gangs_of_a_user_have_one_by_their_unix_sockets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent, secrets = formed_with(monkeypatch, tmp_path, 0, [Tokens.new(), Tokens.new()])
    assert secrets == {sent}
