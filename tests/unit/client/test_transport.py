"""What becomes of calls that end before their answer, or never reach a rank."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.fronts import connected
from tests.unit.client.sidecars import WAIT, Sidecar, SidecarGang, serve

import rankbridge
from rankbridge.v1 import collective_service_pb2 as collective_pb, group_service_pb2 as group_pb, value_pb2


class Held:
    """A method that a rank enters and does not leave until told."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.left = threading.Event()
        self.ended = threading.Event()

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.add_callback(self.ended.set)
        self.entered.set()
        self.left.wait(WAIT)
        return collective_pb.BarrierResponse(value=value_pb2.Value(none=value_pb2.NoneValue()))


@pytest.fixture
def held(sidecars: SidecarGang) -> Iterator[Held]:
    """Rank 1, held in its barrier."""
    held = Held()
    sidecars[1].answers["Barrier"] = held
    yield held
    held.left.set()


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A target at which nobody listens: its port is taken, and not listened at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_rank_that_is_not_there_is_a_definite_error_naming_it(
    front: str, sidecars: SidecarGang, nowhere: str
) -> None:
    targets = [*sidecars.tcp[:3], nowhere]
    with pytest.raises(rankbridge.UnavailableError) as caught, connected(front, targets):
        pass
    assert caught.value.rank == 3
    assert nowhere in caught.value.message
    (failed,) = [outcome.error for outcome in caught.value.outcomes if outcome.error is not None]  # type: ignore[attr-defined]
    assert not failed.indefinite
    assert all(sidecar.sessions == {""} for sidecar in sidecars.sidecars), "what was opened is closed again"


def test_a_rank_that_dies_during_a_call_leaves_it_indefinite(
    front: str, sidecars: SidecarGang, held: Held
) -> None:
    with connected(front, sidecars.unix) as gang:
        pending = gang[1].start("barrier", group="world")
        _until(held.entered, pending)
        sidecars.servers[1].stop(0).wait(WAIT)
        error = pending.exception()
        assert isinstance(error, rankbridge.UnavailableError | rankbridge.CallCancelledError)
        assert error.indefinite
        assert (error.rank, error.group, error.operation) == (1, "world", "barrier")


def test_a_rank_that_never_answers_ends_in_an_indefinite_deadline(
    front: str, sidecars: SidecarGang, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankbridge._plan.operations.declare.MARGIN", 0.1)
    with connected(front, sidecars.unix) as gang:
        begun = time.monotonic()
        with pytest.raises(rankbridge.DeadlineExceededError) as caught:
            gang[1].barrier(timeout=0.1, operation_id="op")
        assert 0.2 <= time.monotonic() - begun < WAIT
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.indefinite
        assert caught.value.operation_id == "op"


def test_the_ranks_own_verdict_arrives_before_the_deadline_of_the_rpc(
    front: str, sidecars: SidecarGang
) -> None:
    def late(request: Any, context: grpc.ServicerContext) -> Any:
        remaining = context.time_remaining()
        assert remaining is not None
        missing = sidecars[1].error("PEER_MISSING", f"{request.call.timeout_ms} of {remaining * 1000}")
        return group_pb.DestroyGroupResponse(error=missing)

    sidecars[1].answers["DestroyGroup"] = late
    with connected(front, sidecars.unix) as gang, pytest.raises(rankbridge.PeerMissingError) as caught:
        gang[1].destroy_group("world", timeout=0.5)
    sent, remaining = map(float, caught.value.message.split(" of "))
    assert sent == 500
    # gRPC rounds a timeout up as it writes it; some of it has passed when the rank looks.
    assert sent < remaining < 2600


def test_cancelling_a_call_reaches_the_rank(front: str, sidecars: SidecarGang, held: Held) -> None:
    sidecars[1].answers["DestroyGroup"] = held
    with connected(front, sidecars.unix) as gang:
        pending = gang[1].start("destroy_group", "world")
        _until(held.entered, pending)
        assert not pending.done()
        with pytest.raises(TimeoutError, match="not ended yet"):
            pending.result(timeout=0.01)
        pending.cancel()
        error = pending.exception(timeout=WAIT)
        assert isinstance(error, rankbridge.CallCancelledError)
        assert error.indefinite
        assert pending.done()
        assert held.ended.wait(WAIT)


def test_cancelling_a_fetch_ends_it(front: str, sidecars: SidecarGang) -> None:
    entered, left = threading.Event(), threading.Event()

    def stuck(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        context.add_callback(left.set)
        entered.set()
        left.wait(WAIT)
        yield from ()

    sidecars[0].answers["GetTensor"] = stuck
    with connected(front, sidecars.unix) as gang:
        pending = gang[0].start("get", gang[0].put(1.0))
        _until(entered, pending)
        with pytest.raises(TimeoutError, match="not ended yet"):
            pending.result(timeout=0.01)
        pending.cancel()
        assert isinstance(pending.exception(timeout=WAIT), rankbridge.CallCancelledError)
        assert left.wait(WAIT)


def test_cancelling_a_task_cancels_its_calls_on_every_rank(sidecars: SidecarGang, held: Held) -> None:
    others = [Held() for _ in range(3)]
    for rank, other in zip((0, 2, 3), others, strict=True):
        sidecars[rank].answers["Barrier"] = other

    async def main() -> None:
        async with rankbridge.aconnect(sidecars.unix) as gang:
            task = asyncio.create_task(gang.barrier())
            for entered in (held, *others):
                await asyncio.to_thread(entered.entered.wait, WAIT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert all(cancelled.ended.wait(WAIT) for cancelled in (held, *others))
    for other in others:
        other.left.set()


def test_an_error_that_nobody_asks_for_is_not_logged(
    sidecars: SidecarGang, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with rankbridge.aconnect(sidecars.unix) as gang:
            pending = gang[0].start("describe_group", "none")
            assert await pending.exception() is not None
            ended = gang[0].start("describe_group", "none")
            while not ended.done():
                await asyncio.sleep(0)
            del ended
            gc.collect()

    asyncio.run(main())
    # gRPC's poller logs that it found nothing to read, where two loops wake for one event (its issue 25364).
    assert [it for it in caplog.records if "_handle_events" not in it.getMessage()] == []


def test_closing_a_gang_ends_its_calls(front: str, sidecars: SidecarGang, held: Held) -> None:
    with connected(front, sidecars.unix) as gang:
        pending = gang[1].start("barrier")
        _until(held.entered, pending)
        gang.close()
        assert isinstance(pending.exception(timeout=WAIT), rankbridge.CallCancelledError)


def test_an_answer_that_is_no_message_is_a_protocol_error(
    front: str, sidecars: SidecarGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(front, sidecars.unix) as gang:
        sidecars[0].answers["Barrier"] = lambda request, context: collective_pb.BarrierResponse()
        with pytest.raises(rankbridge.ProtocolError, match="nothing set") as caught:
            gang[0].barrier()
        assert (caught.value.rank, caught.value.operation) == (0, "barrier")
        assert caught.value.indefinite, "the rank has answered, so it may have done it"


def test_statuses_of_refused_calls_are_definite(front: str, sidecars: SidecarGang) -> None:
    def refuse(request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")

    sidecars[0].answers["Barrier"] = refuse
    with (
        connected(front, sidecars.unix) as gang,
        pytest.raises(rankbridge.NotAllowedError, match="not you") as caught,
    ):
        gang[0].barrier()
    assert not caught.value.indefinite


def test_without_a_session_nothing_is_sent_before_the_first_call(front: str, sidecars: SidecarGang) -> None:
    with connected(front, sidecars.tcp, session=False) as gang:
        assert gang.session_id == ""
        assert gang[0].put(1.0).session_id == ""
        assert "OpenSession" not in sidecars[0].requests
    assert sidecars[0].held, "the shared session outlives the gang"
    assert "CloseSession" not in sidecars[0].requests


def test_a_gang_can_be_closed_when_a_rank_is_gone(front: str, sidecars: SidecarGang) -> None:
    with connected(front, sidecars.unix):
        sidecars.servers[2].stop(0).wait(WAIT)
    assert sidecars[3].sessions == {""}


def test_tls_is_spoken_where_it_is_asked_for(front: str, tmp_path: Path) -> None:
    key, cert = _certificate(tmp_path)
    credentials = grpc.ssl_server_credentials([(key, cert)])
    gang_of_one = object.__new__(SidecarGang)
    sidecar = Sidecar(0, gang_of_one)
    server, port = serve(sidecar, "", credentials)
    try:
        tls = grpc.ssl_channel_credentials(cert)
        with connected(front, [[f"unix:{tmp_path}/none", f"localhost:{port}"]], tls=tls) as gang:
            assert gang[0].get(gang[0].put(2.5)) == 2.5
    finally:
        server.stop(None).wait(WAIT)


def _certificate(directory: Path) -> tuple[bytes, bytes]:
    key, cert = directory / "key.pem", directory / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", os.fspath(key), "-out", os.fspath(cert)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return key.read_bytes(), cert.read_bytes()


def _until(event: threading.Event, pending: Any) -> None:
    # The asyncio front's call goes on only while its loop runs, which `exception` makes it.
    deadline = time.monotonic() + WAIT
    while not event.is_set() and time.monotonic() < deadline:
        with contextlib.suppress(TimeoutError):
            pending.exception(timeout=0.01)
    assert event.is_set()
