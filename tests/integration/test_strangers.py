"""A stranger who reaches every port of a gang that was started with the defaults: what it does, and what is left of it.

After each attack the ranks are the same processes in the same generation, and have the descriptors, threads and memory
that they had. Another controller's calls go on meanwhile.
"""

from __future__ import annotations

import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.proc import open_files, thread_names
from tests.support.waiting import until

import rankbridge
from rankbridge.v1 import rank_service_pb2 as ranks_pb, ref_service_pb2 as refs_pb
from rankbridge_server.core.tokens import Role
from rankbridge_server.service.server import ROLES

MIB = 1 << 20
# More than this would be a leak; less is what an allocator keeps.
MEMORY_MIB = 64
CALLED_S = 40.0
SOFT_FILES = 1024


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    """A gang that a shell with the usual limit of open files has started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT_FILES, hard))
    try:
        with ExitStack() as stack:
            gang = stack.enter_context(up(tmp_path_factory.mktemp("strangers"), 2, "gloo", own=True))
            # The stranger needs more.
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            yield gang
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_mib(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() // MIB


def sockets_of(pid: int) -> list[str]:
    return [name for name in open_files(pid) if name.startswith("socket:")]


def ports_of(running: RunningGang) -> dict[int, list[int]]:
    """TCP ports on which each rank listens, by pid: gRPC's first, and Gloo's."""
    found = {}
    for pid, target in zip(running.pids, running.tcp_targets, strict=True):
        inodes = {name.removeprefix("socket:[").rstrip("]") for name in sockets_of(pid)}
        rows = [
            line.split()
            for family in ("tcp", "tcp6")
            for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]
        ]
        listening = {
            int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes
        }
        own = int(target.rpartition(":")[2])
        found[pid] = [own, *(listening - {own})]
        assert own in listening
        assert len(listening) > 1
    return found


@contextmanager
def unharmed(running: RunningGang) -> Iterator[Any]:
    """Whatever the block does changes nothing of the gang, which another controller goes on to use."""
    with rankbridge.connect(running.endpoints_file, timeout=CALLED_S) as gang:
        gang.barrier()
        files = {pid: len(open_files(pid)) for pid in running.pids}
        threads = {pid: len(thread_names(pid)) for pid in running.pids}
        memory = {pid: resident_mib(pid) for pid in running.pids}
        before = [(it.pid, it.generation, it.generation_state) for it in gang.status()]
        yield gang
        gang.barrier()
        assert [(it.pid, it.generation, it.generation_state) for it in gang.status()] == before
        assert before[0][2] == "formed"
        until(lambda: all(len(open_files(pid)) <= files[pid] + 2 for pid in running.pids))
        for pid in running.pids:
            # gRPC keeps threads that it has made.
            assert len(thread_names(pid)) <= threads[pid] + 64
            assert resident_mib(pid) <= memory[pid] + MEMORY_MIB


def test_every_rpc_is_refused_whatever_it_carries(running: RunningGang) -> None:
    guarded = [method for method, role in ROLES.items() if role is not Role.ANYONE]
    assert len(guarded) > 60
    bodies = [
        b"",
        b"\xff" * 64,
        ranks_pb.PrepareGenerationRequest(generation=2**64 - 1, world_size=2).SerializeToString(),
        ranks_pb.CommitGenerationRequest(generation=1, secret=b"x").SerializeToString(),
        ranks_pb.AbortGenerationRequest(generation=1, reason="x" * MIB).SerializeToString(),
        refs_pb.OpenSessionRequest(session_id="stranger").SerializeToString(),
    ]
    with unharmed(running):
        for target in running.tcp_targets:
            with grpc.insecure_channel(target) as channel:
                for method in guarded:
                    for body in bodies:
                        call = channel.stream_stream(method, bytes, bytes)(iter([body]), timeout=CALLED_S)
                        with pytest.raises(grpc.RpcError):
                            list(call)
                        assert call.code() is grpc.StatusCode.UNAUTHENTICATED, method


def test_thousands_of_calls_at_once_keep_no_thread_and_hold_up_nobody(running: RunningGang) -> None:
    with unharmed(running) as gang, ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1)]))
            for target in running.tcp_targets * 4
        ]
        methods = ["/rankbridge.v1.RefService/PutTensor", "/rankbridge.v1.OperationService/Await"]
        calls = [
            channel.stream_stream(method, bytes, bytes)(iter(()), timeout=CALLED_S)
            for channel in channels
            for method in methods
            for _ in range(100)
        ]
        slowest = 0.0
        for _ in range(20):
            begun = time.perf_counter()
            gang.barrier()
            slowest = max(slowest, time.perf_counter() - begun)
        for call in calls:
            with suppress(grpc.RpcError):
                list(call)
        assert {call.code() for call in calls} == {grpc.StatusCode.UNAUTHENTICATED}
        assert slowest < CALLED_S / 2


def test_more_idle_connections_than_a_shell_lets_a_process_have(running: RunningGang) -> None:
    for pid, ports in ports_of(running).items():
        for port in ports:
            with unharmed(running) as gang, ExitStack() as stack:
                for _ in range(SOFT_FILES + 100):
                    sock = stack.enter_context(socket.socket())
                    sock.setblocking(False)
                    sock.connect_ex(("127.0.0.1", port))
                if port == ports[0]:
                    until(lambda pid=pid: len(open_files(pid)) > SOFT_FILES)  # type: ignore[misc]
                gang.barrier()
                # A new controller gets in as well.
                with rankbridge.connect(running.endpoints_file, timeout=CALLED_S) as newcomer:
                    newcomer.barrier()
                with rankbridge.connect(running.tcp, timeout=CALLED_S) as newcomer:
                    newcomer.barrier()


@pytest.mark.sampled
def test_eight_bytes_and_the_end_at_every_port(running: RunningGang) -> None:
    reset = struct.pack("ii", 1, 0)
    for ports in ports_of(running).values():
        for port in ports:
            with unharmed(running):
                for number in range(300):
                    with socket.socket() as sock:
                        # A port where nobody is let in drops what comes, and says nothing.
                        sock.settimeout(0.01)
                        with suppress(OSError):
                            sock.connect(("127.0.0.1", port))
                            sock.send(number.to_bytes(8, "little"))
                            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
