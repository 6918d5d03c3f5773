"""`python -m bench.attacks`: what others feel of who takes all that a rank gives, and when it is given back.

The attacker is a process of its own: a stranger with thousands of connections and calls without a token, or a guest at
each of its limits. Meanwhile another guest calls barriers.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

import grpc

import rankbridge
from bench.gang import ARGUMENTS, COMMAND, gang
from rankbridge import RankBridgeError
from rankbridge.v1 import dtype_pb2, operation_service_pb2, ref_service_pb2

CALLS = 400
CONNECTIONS = 4000
SESSIONS = 1100
STREAMS = 64
SUBMITTED = 1100
_GIVEN_BACK_S = 60.0


def attack_as_stranger(target: str, token: str) -> ExitStack:
    """Thousands of idle connections, and of calls without a token."""
    stack = ExitStack()
    host, _, port = target.rpartition(":")
    for _ in range(CONNECTIONS):
        sock = stack.enter_context(socket.socket())
        sock.setblocking(False)
        sock.connect_ex((host, int(port)))
    begin = _beginner(stack, target, None)
    _again_and_again(stack, lambda: _ended(begin("RefService/PutTensor", b"")))
    return stack


def attack_as_guest(target: str, token: str) -> ExitStack:
    """Streams that go on, operations that wait, sessions, tensors that are declared and never sent."""
    stack = ExitStack()
    begin = _beginner(stack, target, token)
    header = ref_service_pb2.PutTensorRequest()
    header.header.tensor.dtype = dtype_pb2.DTYPE_UINT8
    header.header.tensor.shape.append(64 << 20)
    for _ in range(STREAMS):
        begin("RefService/PutTensor", header.SerializeToString(), end=False)
        begin("GangService/Execute", b"", end=False)
        begin("RankService/WatchEvents", b"")
    for number in range(SUBMITTED):
        submit = operation_service_pb2.SubmitRequest()
        submit.operation.recv.call.operation_id = str(number)
        submit.operation.recv.tag = number
        _ended(begin("OperationService/Submit", submit.SerializeToString()))
    for _ in range(SESSIONS):
        _ended(begin("RefService/OpenSession", b""))
    # Above all limits: from here on everything is refused.
    _again_and_again(stack, lambda: _ended(begin("RefService/OpenSession", b"")))
    return stack


ATTACKS: dict[str, Callable[[str, str], ExitStack]] = {
    "stranger": attack_as_stranger,
    "guest": attack_as_guest,
}


def _beginner(stack: ExitStack, target: str, token: str | None) -> Callable[..., Any]:
    channel = stack.enter_context(grpc.insecure_channel(target))
    over = threading.Event()
    stack.callback(over.set)
    shown = None if token is None else (("authorization", f"Bearer {token}"),)

    def requests(sent: bytes, end: bool) -> Iterator[bytes]:
        yield sent
        if not end:
            over.wait()

    def begin(method: str, sent: bytes, end: bool = True) -> Any:
        call = channel.stream_stream(f"/rankbridge.v1.{method}", bytes, bytes)
        return call(requests(sent, end), metadata=shown)

    return begin


def _ended(call: Any) -> None:
    with suppress(grpc.RpcError):
        list(call)


def _again_and_again(stack: ExitStack, act: Callable[[], object]) -> None:
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            act()

    thread = threading.Thread(target=run)
    thread.start()
    stack.callback(thread.join)
    stack.callback(over.set)


@contextmanager
def attacker(kind: str, target: str, token: str) -> Iterator[None]:
    """A process that attacks until the block is left, and is then killed."""
    command = [sys.executable, "-m", "bench.attacks", "--attack", kind, target, token]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"it goes on\n":
            raise RuntimeError("the attacker has failed")
        yield
        process.kill()


def _barriers(controller: rankbridge.Gang) -> tuple[float, float]:
    """The median and the 99th percentile, in milliseconds."""
    took = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        controller.barrier()
        took.append(1000 * (time.perf_counter() - begun))
    cuts = quantiles(took, n=100)
    return cuts[49], cuts[98]


def _kept(pid: int) -> tuple[int, int, int]:
    """Resident MiB, open files, threads."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    process = Path(f"/proc/{pid}")
    files, threads = len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20, files, threads


def _given_back(owner: rankbridge.Gang, pid: int, files: int) -> float:
    """Seconds until nothing of the attacker's is left."""
    since = time.perf_counter()
    while time.perf_counter() - since < _GIVEN_BACK_S:
        with suppress(RankBridgeError):
            status = owner[0].status()
            mallory = [it for it in status.sessions if it.session_id.startswith("~mallory/")]
            if not mallory and not status.pending_operations and _kept(pid)[1] <= files + 2:
                return time.perf_counter() - since
        time.sleep(0.05)
    raise RuntimeError(f"what the attacker had is still there after {_GIVEN_BACK_S} s")


def main() -> None:
    """Prints a row for each attack."""
    with tempfile.TemporaryDirectory() as directory:
        tokens = Path(directory) / "tokens"
        for guest in ([], ["--guest", "mallory=drive"], ["--guest", "alice=drive"]):
            subprocess.run([COMMAND, "tokens", str(tokens), *guest], check=True, stdout=subprocess.DEVNULL)
        shown = {
            name: tokens.with_name(f"tokens.{name}").read_text().strip() for name in ("mallory", "alice")
        }
        with gang(2, [*ARGUMENTS, "--token-file", str(tokens)]) as file:
            ranks = json.loads(file.read_text())["ranks"]
            targets, pid = [rank["endpoints"][1] for rank in ranks], ranks[0]["pid"]
            with (
                rankbridge.connect(file) as owner,
                rankbridge.connect(targets, token=shown["alice"]) as alice,
            ):
                alice.barrier()
                print("attack     p50 ms  p99 ms   memory  files  threads  given back after")
                for kind in ("none", *ATTACKS):
                    before = _kept(pid)
                    if kind == "none":
                        print("{:10} {:6.2f}  {:6.2f}".format(kind, *_barriers(alice)))
                        continue
                    with attacker(kind, targets[0], shown["mallory"]):
                        p50, p99 = _barriers(alice)
                        memory, files, threads = (
                            now - was for now, was in zip(_kept(pid), before, strict=True)
                        )
                    seconds = _given_back(owner, pid, before[1])
                    print(
                        f"{kind:10} {p50:6.2f}  {p99:6.2f}  {memory:+4} MiB  {files:+5}  {threads:+7}  {seconds:.1f} s"
                    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attack", nargs=3, help=argparse.SUPPRESS)
    if given := parser.parse_args().attack:
        with ATTACKS[given[0]](*given[1:]):
            print("it goes on", flush=True)
            threading.Event().wait()
    main()
