"""Random input at every door of real ranks: nobody crashes, hangs, or ends a generation without the right to."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import grpc
import pytest
from tests.fuzz.calls import METHODS, Finding, allowed, fuzz
from tests.fuzz.messages import Messages
from tests.support.gangs import RunningGang, up
from tests.support.local_gang import LocalGang

import rankbridge
from rankbridge.link.v1 import link_pb2
from rankbridge.v1 import gang_service_pb2
from rankbridge_server.agent.messages import Line, Ping
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.tokens import Role, Tokens
from rankbridge_server.links import wire
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.link import dial
from rankbridge_server.links.sockets import SocketLinkMaker, SocketLinks

TIMEOUT_S = 60.0
LIMITS = ["--max-bytes", str(256 << 20), "--max-shared-bytes", str(64 << 20), "--max-refs", "10000"]
OPTIONS = ["--heartbeat-misses", "300", "--default-timeout", "0.3", *LIMITS]


@pytest.fixture(scope="module", params=["gloo", "fake"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("fuzz"), 2, request.param, OPTIONS) as gang:
        yield gang


def assert_as_before(running: RunningGang, generation: int) -> None:
    """The same processes in the same generation, which works."""
    with rankbridge.connect(running.endpoints_file, timeout=TIMEOUT_S) as gang:
        found = [(it.pid, it.generation, it.generation_state) for it in gang.status()]
        assert found == [(pid, generation, "formed") for pid in running.pids]
        gang.barrier()


def refs_of(running: RunningGang) -> list[str]:
    """Refs on rank 0 that a guest names without a session, as the owner does."""
    made = []
    for target in (running.guest, running.endpoints_file):
        with rankbridge.connect(target, session=False, timeout=TIMEOUT_S) as gang:
            made += [
                gang[0].create(dtype, shape).id
                for dtype in ("float32", "int64")
                for shape in ((), (4,), (2, 2))
            ]
    return made


def generation_of(running: RunningGang) -> int:
    with rankbridge.connect(running.endpoints_file, timeout=TIMEOUT_S) as gang:
        return gang.status()[0].generation


@pytest.mark.parametrize(
    ("role", "examples", "codes"),
    [
        ("", 2, {grpc.StatusCode.UNAUTHENTICATED}),
        ("observe", 6, {grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED}),
        ("drive", 10, {grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED}),
    ],
    ids=["nobody", "observe", "drive"],
)
def test_random_calls_of_who_does_not_own_the_gang_leave_it_as_it_was(
    running: RunningGang, seed: int, rounds: int, role: str, examples: int, codes: set[grpc.StatusCode]
) -> None:
    token = running.description["tokens"][role] if role else None
    generation = generation_of(running)
    messages = Messages(seed, refs_of(running))
    try:
        with grpc.insecure_channel(running.tcp_targets[0]) as channel:
            found = fuzz(channel, messages, list(METHODS), examples * rounds, token)
    except Finding as finding:
        raise AssertionError(f"SEED={seed}: {finding}") from finding
    assert codes <= found
    assert_as_before(running, generation)


def test_random_calls_of_the_owner_crash_and_hang_nobody(
    running: RunningGang, seed: int, rounds: int
) -> None:
    messages = Messages(seed, refs_of(running))
    with grpc.insecure_channel(running.tcp_targets[0]) as channel:
        found = fuzz(channel, messages, allowed(Role.OWN), 10 * rounds, running.token)
    assert grpc.StatusCode.OK in found
    with rankbridge.connect(running.endpoints_file, timeout=TIMEOUT_S) as gang:
        gang.form()
    assert_as_before(running, generation_of(running))


def test_random_messages_on_a_stream_without_grpc(running: RunningGang, seed: int, rounds: int) -> None:
    generation = generation_of(running)
    messages, chance = Messages(seed), random.Random(seed)
    path = running.targets[0].removeprefix("unix:") + ".stream"
    for _ in range(40 * rounds):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(TIMEOUT_S)
            sock.connect(path)
            for _ in range(chance.randrange(6)):
                body = messages.any_bytes(gang_service_pb2.ExecuteRequest.DESCRIPTOR)
                length = len(body) if chance.random() < 0.9 else chance.choice([0, 1, 2**31, 2**32 - 1])
                with suppress(ConnectionError):
                    sock.sendall(struct.pack(">I", length) + body)
            with suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                # It ends, whatever was sent.
                while sock.recv(1 << 16):
                    continue
    assert_as_before(running, generation)


@pytest.mark.parametrize("knows", [False, True], ids=["stranger", "peer"])
def test_random_frames_on_links(seed: int, rounds: int, knows: bool) -> None:
    """A stranger changes nothing. Who knows the secret may end the generation, and crashes nobody."""
    gang = LocalGang(2, links=lambda rank: SocketLinkMaker("127.0.0.1:0", heartbeat=Heartbeat(0.2, 300)))
    raised: list[object] = []
    hook, threading.excepthook = threading.excepthook, lambda it: raised.append(it.exc_value)
    try:
        messages, chance = Messages(seed), random.Random(seed)
        for _ in range(40 * rounds):
            links = gang.ranks[0]._current(0).links
            assert isinstance(links, SocketLinks)
            with dial(links.address, TIMEOUT_S) as sock:
                if knows:
                    generation = gang.ranks[0].describe().number
                    sock.sendall(wire.hello(generation, chance.randrange(3), links._secret, "world"))
                for _ in range(chance.randrange(1, 6)):
                    body = messages.any_bytes(link_pb2.Frame.DESCRIPTOR)
                    length = len(body) if chance.random() < 0.9 else chance.choice([0, 1, 2**31, 2**32 - 1])
                    with suppress(OSError):
                        sock.sendall(struct.pack(">I", length) + body)
            if knows and gang.ranks[0].describe().state.name != "FORMED":
                gang.form()
        assert gang.ranks[0].describe().number == 1 or knows
        if knows:
            gang.form()
        assert gang.run(barrier, [Barrier()] * 2) == [None] * 2
    finally:
        threading.excepthook = hook
        for rank in gang.ranks:
            rank.close("the test is over")
    assert raised == []


def test_random_lines_of_a_rank_are_the_end_of_its_line_and_no_more(seed: int, rounds: int) -> None:
    chance = random.Random(seed)
    for _ in range(300 * rounds):
        mine, theirs = socket.socketpair()
        with mine, theirs:
            line = Line(mine)
            known = json.dumps(["Ready", {"endpoints": ["unix:/x"]}]).encode()
            wrong = bytearray(known)
            for _ in range(chance.randrange(1, 4)):
                wrong[chance.randrange(len(wrong))] = chance.randrange(256)
            theirs.sendall(bytes(wrong) + b"\n")
            Line(theirs).send(Ping())
            theirs.shutdown(socket.SHUT_WR)
            for _ in range(3):
                if line.receive() is None:
                    break
            else:
                raise AssertionError(f"it never ends: {bytes(wrong)!r}")


def test_what_the_owner_may_is_more_than_what_others_may() -> None:
    assert set(allowed(Role.OBSERVE)) < set(allowed(Role.DRIVE)) < set(allowed(Role.OWN)) < set(METHODS)
    assert len({Tokens.new().own for _ in range(9)}) == 9
