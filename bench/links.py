"""Admission over control links, beside a bare star of unix sockets that does nothing but exchange bytes.

`python -m bench.links` prints, for 2 and 4 ranks, the p50 of one round as each side sees it, and the ratio. Rounds of
both are interleaved in blocks; ranks are processes, as in a gang.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from rankbridge_server.core.activity import Activity, Doing
from rankbridge_server.core.admission.admission import Arrival, Ruling
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.link import dial, listen
from rankbridge_server.links.listeners import SocketListener
from rankbridge_server.links.sockets import SocketLinks

CONTRACT = "all_reduce dtype=float32 shape=[1] op=sum"
BLOCK = 200
TIMEOUT_S = 10.0


def bare(directory: Path, rank: int, size: int) -> Callable[[], None]:
    """One round of a bare star: 64 bytes to the leader, 64 bytes back when all have come."""
    message = bytes(64)
    if rank:
        up = dial(f"unix:{directory}/bare", TIMEOUT_S)

        def follow() -> None:
            up.sendall(message)
            _exactly(up)

        return follow
    listener, _ = listen(f"unix:{directory}/bare")
    (directory / "bare-listens").touch()
    followers = [listener.accept()[0] for _ in range(size - 1)]

    def lead() -> None:
        for follower in followers:
            _exactly(follower)
        for follower in followers:
            follower.sendall(message)

    return lead


def _exactly(sock: socket.socket) -> None:
    left = 64
    while left:
        left -= len(sock.recv(left))


def admission(links: SocketLinks) -> Callable[[], None]:
    """One admission of a group."""
    sequence = 0

    def arrive() -> None:
        nonlocal sequence
        arrival = Arrival(sequence, f"operation-{sequence}", CONTRACT, TIMEOUT_S)
        verdict = links.group("world").admit(arrival, lambda: None, TIMEOUT_S)
        if verdict.ruling is not Ruling.GO:
            raise RuntimeError(f"not admitted: {verdict}")
        sequence += 1

    return arrive


def ignore(*_: object) -> None:
    """Gets what does not matter here."""


def idle(_: str) -> Activity:
    """Has no call."""
    return Activity(doing=Doing.IDLE)


def serve(directory: Path, rank: int, size: int, blocks: int, report: Connection) -> None:
    """One rank: both ways, block by block; reports each side's times in seconds."""
    links = SocketLinks(1, rank, SocketListener(f"unix:{directory}/links-{rank}"), Heartbeat())
    report.send(links.address)
    links.start(dict(enumerate(report.recv())), b"secret", ignore, ignore, ignore, idle)
    links.add_group("world", list(range(size)), TIMEOUT_S)
    report.send("linked")
    report.recv()
    if rank == 0:
        report.send("listening")
    ways = {"bare": bare(directory, rank, size), "links": admission(links)}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for block in range(blocks + 1):
        for way, run in ways.items():
            for _ in range(BLOCK):
                start = time.perf_counter()
                run()
                if block:
                    times[way].append(time.perf_counter() - start)
    report.send({way: statistics.median(taken) * 1e6 for way, taken in times.items()})
    report.recv()


def measure(size: int, blocks: int) -> list[dict[str, float]]:
    """Median microseconds of one round by way, for each rank."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        pipes = [context.Pipe() for _ in range(size)]
        ranks = [
            context.Process(target=serve, args=(Path(directory), rank, size, blocks, pipes[rank][1]))
            for rank in range(size)
        ]
        for process in ranks:
            process.start()
        ours = [pipe[0] for pipe in pipes]
        addresses = [pipe.recv() for pipe in ours]
        for pipe in ours:
            pipe.send(addresses)
        for pipe in ours:
            pipe.recv()
        # The leader of the bare star listens before anyone dials.
        ours[0].send("go")
        ours[0].recv()
        while not (Path(directory) / "bare-listens").exists():
            pass
        for pipe in ours[1:]:
            pipe.send("go")
        results = [pipe.recv() for pipe in ours]
        # Nobody ends before all have their last verdict.
        for pipe in ours:
            pipe.send("done")
        for process in ranks:
            process.join()
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--blocks", type=int, default=20, help=f"blocks of {BLOCK} rounds (default: %(default)s)"
    )
    options = parser.parse_args()
    for size in (2, 4):
        for rank, result in enumerate(measure(size, options.blocks)):
            side = "leader" if rank == 0 else f"rank {rank}"
            print(
                f"{size} ranks, {side}: bare star {result['bare']:.0f} us, admission {result['links']:.0f} us, "
                f"ratio {result['links'] / result['bare']:.2f}"
            )


if __name__ == "__main__":
    main()
