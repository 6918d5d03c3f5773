"""Streams without gRPC: what is theirs alone. What all streams do is in test_executing.py."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from tests.support.local_gang import LocalGang
from tests.support.proc import open_files
from tests.support.waiting import until
from tests.unit.service.stages import (
    BARRIER_PART,
    PATIENCE_S,
    SIZE,
    Held,
    Locally,
    Stage,
    Stream,
    Way,
    is_healthy,
    pending,
    sequences,
)

from rankbridge.v1 import (
    gang_service_pb2 as pb,
    object_service_pb2 as objects,
    operation_service_pb2 as operations,
    value_pb2,
)
from rankbridge_server.service.server import Server
from rankbridge_server.service.streams.local_streams import SUFFIX

VALUES = ["value"] * SIZE
LARGE = 3_000


@pytest.fixture
def way() -> type[Way]:
    return Locally


def connected(stage: Stage, at: int = 0) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(PATIENCE_S)
    sock.connect(stage.servers[at].endpoints[0].removeprefix("unix:") + SUFFIX)
    return sock


def framed(request: pb.ExecuteRequest) -> bytes:
    body = request.SerializeToString()
    return len(body).to_bytes(4, "big") + body


BARRIER = framed(pb.ExecuteRequest(call=pb.CallRequest(operations=[BARRIER_PART])))


@pytest.mark.parametrize(
    "sent", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03\xff\xff\xff", BARRIER + b"\x7f\xff\xff\xff"]
)
def test_what_is_no_request_ends_the_connection_alone(stage: Stage, sent: bytes) -> None:
    other = Stream(stage)
    with connected(stage) as sock:
        sock.sendall(sent)
        while sock.recv(4096):
            continue
    other.call(operation_id="other")
    assert other.result() == ("other", VALUES)
    # The caller sees the end before the rank has forgotten the connection.
    until(lambda: stage.streams() == 1)


@pytest.mark.parametrize("length", [2, 4, len(BARRIER) - 1])
def test_half_a_request_is_none(stage: Stage, length: int) -> None:
    with connected(stage) as sock:
        sock.sendall(BARRIER[:length])
        sock.shutdown(socket.SHUT_WR)
        # It ends in order: nothing was begun.
        assert sock.recv(4096) == bytes(4)
        assert sock.recv(4096) == b""
    assert sequences(stage) == [0] * SIZE


def test_requests_that_come_byte_by_byte_and_several_at_once(stage: Stage) -> None:
    with connected(stage) as sock:
        for byte in BARRIER:
            sock.sendall(bytes([byte]))
        sock.sendall(BARRIER * 5)
        sock.shutdown(socket.SHUT_WR)
        incoming = sock.makefile("rb")
        answers = 0
        while length := int.from_bytes(incoming.read(4), "big"):
            assert pb.ExecuteResponse.FromString(incoming.read(length)).WhichOneof("outcome") == "outcomes"
            answers += 1
        incoming.close()
    assert answers == 6


def test_a_caller_that_reads_nothing_holds_up_nobody(stage: Stage) -> None:
    large = value_pb2.Value(text="x" * (LARGE // SIZE))
    part = operations.Operation(all_gather_object=objects.AllGatherObjectRequest(value=large))
    deaf, other = connected(stage), Stream(stage)
    call = framed(pb.ExecuteRequest(call=pb.CallRequest(operations=[part])))
    with deaf:
        # Their answers are more than the connection takes.
        for _ in range(100):
            deaf.sendall(call)
        until(lambda: sequences(stage) == [100] * SIZE)
        other.call(operation_id="other")
        assert other.result() == ("other", VALUES)
        assert any(it.name == "outbox" for it in threading.enumerate())
        incoming = deaf.makefile("rb")
        for _ in range(100):
            length = int.from_bytes(incoming.read(4), "big")
            response = pb.ExecuteResponse.FromString(incoming.read(length))
            assert len(response.outcomes.members) == SIZE
        incoming.close()
    until(lambda: not any(it.name == "outbox" for it in threading.enumerate()))


def test_a_caller_that_goes_while_its_answers_wait_leaves_nothing(stage: Stage) -> None:
    large = value_pb2.Value(text="x" * (LARGE // SIZE))
    part = operations.Operation(all_gather_object=objects.AllGatherObjectRequest(value=large))
    with connected(stage) as deaf:
        for _ in range(100):
            deaf.sendall(framed(pb.ExecuteRequest(call=pb.CallRequest(operations=[part]))))
        until(lambda: sequences(stage) == [100] * SIZE)
    until(lambda: not stage.streams())
    until(lambda: not any(it.name in ("outbox", "execute") for it in threading.enumerate()))
    assert is_healthy(stage)


def test_a_stop_cuts_off_what_is_not_answered_in_its_grace(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call()
        until(lambda: pending(stage, 1) == 1)
        stage.servers[0].stop(0.01)
        with pytest.raises(AssertionError, match="it broke off"):
            stream.answer()
        until(lambda: not stage.streams())


def test_a_stop_leaves_no_socket_and_a_stale_one_gives_way(tmp_path: Path) -> None:
    gang = LocalGang(1)
    path = tmp_path / f"rank{SUFFIX}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(path))
    assert path.exists()
    server = Server(gang.ranks[0], [f"unix:{tmp_path}/rank"], 8)
    server.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(str(path))
    server.stop(PATIENCE_S)
    assert not path.exists()
    until(lambda: not any(it.name == "local-streams" for it in threading.enumerate()))


def test_where_the_path_is_too_long_grpc_serves_alone(tmp_path: Path) -> None:
    gang = LocalGang(1)
    # The longest that a socket's own may be.
    path = str(tmp_path / "x").ljust(107, "x")
    if len(path) > 107:
        pytest.skip("the directory of this test has a path that is too long itself")
    server = Server(gang.ranks[0], [f"unix:{path}"], 8)
    server.start()
    assert server.endpoints == [f"unix:{path}"]
    assert [it.name for it in tmp_path.iterdir()] == [Path(path).name]
    server.stop(PATIENCE_S)


def test_no_file_is_left_open(stage: Stage) -> None:
    before = set(open_files())
    for _ in range(3):
        stream = Stream(stage)
        stream.call()
        assert stream.result()[1] == VALUES
        stream.hang_up()
    until(lambda: set(open_files()) <= before)
