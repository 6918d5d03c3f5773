"""Who may call what over TCP: every call of every service, with every token, at a rank that serves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.support.local_gang import LocalGang

from rankbridge.v1 import rank_service_pb2
from rankbridge.v1.rank_service_pb2_grpc import RankServiceStub
from rankbridge_server.core.tokens import Role, Tokens
from rankbridge_server.service.gate import bearing
from rankbridge_server.service.server import ROLES, Server

TOKENS = Tokens.new()
GUARDED = sorted(method for method, role in ROLES.items() if role is not Role.ANYONE)


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A unix socket and a TCP port of a rank that wants tokens."""
    path = tmp_path_factory.mktemp("gate") / "rank"
    server = Server(LocalGang(1).ranks[0], [f"unix:{path}", "127.0.0.1:0"], 16, tokens=lambda: TOKENS)
    server.start()
    yield server.endpoints
    server.stop(0)


@pytest.fixture
def channel(endpoints: list[str]) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(endpoints[1]) as channel:
        yield channel


def code_of(channel: grpc.Channel, method: str, token: str | None) -> grpc.StatusCode:
    """How a call ends that says nothing and closes its side."""
    call = channel.stream_stream(method, bytes, bytes)(
        iter(()), metadata=None if token is None else bearing(token), timeout=10
    )
    with contextlib.suppress(grpc.RpcError):
        list(call)
    return call.code()


@pytest.mark.parametrize("method", GUARDED)
def test_nobody_calls_without_a_token_or_with_anothers(channel: grpc.Channel, method: str) -> None:
    for token in (None, "", Tokens.new().own, TOKENS.own[:-1]):
        assert code_of(channel, method, token) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", GUARDED)
def test_a_token_of_a_lesser_role_is_not_enough(channel: grpc.Channel, method: str) -> None:
    for role in (Role.OBSERVE, Role.DRIVE, Role.OWN, Role.PEER):
        code = code_of(channel, method, getattr(TOKENS, role.name.lower()))
        assert (code is grpc.StatusCode.PERMISSION_DENIED) is (role < ROLES[method]), role


def test_every_call_says_in_the_proto_which_role_it_needs() -> None:
    assert [method for method, role in ROLES.items() if role is Role.ANYONE] == [
        "/grpc.health.v1.Health/Check"
    ]
    assert {method for method, role in ROLES.items() if role is Role.PEER} == {
        "/rankbridge.v1.RankService/PrepareGeneration",
        "/rankbridge.v1.RankService/CommitGeneration",
    }


def test_every_service_of_the_server_is_known(endpoints: list[str], channel: grpc.Channel) -> None:
    """What is not known needs the owner's token, and would not be drawn for these tests."""
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (answer,) = stub.ServerReflectionInfo(iter([request]), metadata=bearing(TOKENS.observe), timeout=10)
    served = {service.name for service in answer.list_services_response.service}
    assert served == {method.split("/")[1] for method in ROLES} - {"grpc.reflection.v1.ServerReflection"}


def test_what_was_sent_without_a_token_is_not_read(channel: grpc.Channel) -> None:
    sent = 0

    def endless() -> Iterator[Any]:
        nonlocal sent
        while True:
            sent += 1
            yield bytes(1 << 20)

    with pytest.raises(grpc.RpcError) as refused:
        channel.stream_unary("/rankbridge.v1.RefService/PutTensor")(endless(), timeout=30)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert sent < 100


def test_unix_sockets_are_guarded_by_their_directory_alone(endpoints: list[str]) -> None:
    with grpc.insecure_channel(endpoints[0]) as channel:
        described = RankServiceStub(channel).DescribeRank(rank_service_pb2.DescribeRankRequest(), timeout=10)
    assert described.pid


def test_tokens_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(TOKENS.to_json())
    assert Tokens.of_json(file.read_text()) == TOKENS
    for wrong in ("", "{}", "[1]", '{"observe": "a", "drive": "b", "own": "c", "peer": "d"}', TOKENS.own):
        with pytest.raises(ValueError, match="token"):
            Tokens.of_json(wrong)


def test_what_ranks_give_each_other_is_of_their_gang_and_about_what_it_says() -> None:
    sealed = TOKENS.seal("text", "rank 1")
    assert TOKENS.unseal(sealed, "rank 1") == "text"
    others = Tokens.new()
    for forged in (
        others.seal("text", "rank 1"),
        TOKENS.seal("text", "rank 0"),
        sealed + "s",
        sealed[1:],
        "text",
        "",
        " text",
        "\u00fc text",
    ):
        with pytest.raises(ValueError, match="same tokens"):
            TOKENS.unseal(forged, "rank 1")


@pytest.mark.parametrize("token", [None, "observe", "own"])
def test_nothing_is_decompressed(channel: grpc.Channel, token: str | None) -> None:
    metadata = None if token is None else bearing(getattr(TOKENS, token))
    stub = RankServiceStub(channel)
    with pytest.raises(grpc.RpcError) as refused:
        stub.AbortGeneration(
            rank_service_pb2.AbortGenerationRequest(reason="x" * (64 << 20)),
            metadata=metadata,
            compression=grpc.Compression.Gzip,
            timeout=60,
        )
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
