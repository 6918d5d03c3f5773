"""`rankbridge up --report json`, read by the program that started it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S
from tests.support.processes import stop, watched
from tests.support.waiting import until

import rankbridge

END_TIMEOUT_S = 60
# Of Linux 6.3 and later; Python has no name for it.
IP_LOCAL_PORT_RANGE = 51


class Started:
    """A gang, and the lines that tell of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin, self.stdout = process.stdin, process.stdout

    def next(self) -> dict[str, Any]:
        """The next line, when it comes."""
        line: dict[str, Any] = json.loads(self.stdout.readline())
        return line

    def rest(self) -> list[dict[str, Any]]:
        """All lines until the end."""
        return [json.loads(line) for line in self.stdout]


@contextmanager
def started(options: Sequence[str]) -> Iterator[Started]:
    command = [RANKBRIDGE, "up", "--report", "json", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Started(process)
        finally:
            process.terminate()
            process.wait(END_TIMEOUT_S)


def test_a_lost_rank_and_its_replacement_are_told() -> None:
    with started(["--size", "2", "--exit-on-stdin-close", "--name", "ours"]) as gang:
        assert gang.next() == {"event": "starting", "pid": gang.process.pid, "size": 2}
        ready = gang.next()
        assert (ready["event"], ready["name"], ready["backend"], ready["generation"]) == (
            "ready",
            "ours",
            "gloo",
            1,
        )
        ranks = ready["ranks"]
        with rankbridge.connect([rank["endpoints"][0] for rank in ranks], session=False) as client:
            assert [status.pid for status in client.status()] == [rank["pid"] for rank in ranks]
            os.kill(ranks[1]["pid"], signal.SIGKILL)
            assert gang.next() == {
                "event": "exited",
                "rank": 1,
                "pid": ranks[1]["pid"],
                "how": "killed by SIGKILL",
                "replaced": True,
            }
            replaced = gang.next()
            assert (replaced["event"], replaced["rank"]) == ("replaced", 1)
            assert replaced["pid"] != ranks[1]["pid"]
            assert replaced["endpoints"] == ranks[1]["endpoints"]
            assert client.form().generation == 2
        gang.stdin.close()
        assert gang.rest() == [{"event": "ended", "reason": "standard input was closed"}]
        assert gang.process.wait(END_TIMEOUT_S) == 0


def test_a_stopped_rank_is_suspected_before_it_ends() -> None:
    with started(["--size", "2"]) as gang:
        gang.next()
        ranks = gang.next()["ranks"]
        os.kill(ranks[1]["pid"], signal.SIGSTOP)
        assert gang.next() == {"event": "suspected", "rank": 1, "pid": ranks[1]["pid"]}
        assert gang.next()["event"] == "exited"
        assert gang.next()["event"] == "replaced"


@contextmanager
def unreplaced(gang: Started, rank: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Kills a rank; gives the TCP address that it had, while no other process has taken its place."""
    host, port = rank["endpoints"][1].rsplit(":", 1)
    stop(gang.process.pid)
    try:
        with watched([rank["pid"]]) as killed:
            os.kill(rank["pid"], signal.SIGKILL)
            assert killed.alive_after(END_TIMEOUT_S) == []
        yield host, int(port)
    finally:
        gang.process.send_signal(signal.SIGCONT)


def connect(taker: socket.socket, server: socket.socket) -> None:
    taker.connect(server.getsockname())


def listen(taker: socket.socket, server: socket.socket) -> None:
    taker.bind(("127.0.0.1", 0))
    taker.listen()


@pytest.mark.sampled
@pytest.mark.parametrize("take", [connect, listen])
def test_who_asks_for_any_port_does_not_get_that_of_a_dead_rank(
    take: Callable[[socket.socket, socket.socket], None],
) -> None:
    with started(["--size", "2"]) as gang, socket.create_server(("127.0.0.1", 0)) as server:
        gang.next()
        ranks = gang.next()["ranks"]
        with socket.socket() as taker:
            with unreplaced(gang, ranks[1]) as (_, port), suppress(OSError):
                # The ports of which the system chooses one. An older one chooses any, and then this proves nothing.
                taker.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("=I", port << 16 | port))
                take(taker, server)
            assert gang.next()["event"] == "exited"
            replaced = gang.next()
        assert (replaced["event"], replaced["rank"]) == ("replaced", 1)
        assert replaced["endpoints"] == ranks[1]["endpoints"]


def test_a_replacement_that_could_not_serve_is_followed_by_another() -> None:
    with started(["--size", "2"]) as gang, ExitStack() as stack:
        gang.next()
        ranks = gang.next()["ranks"]
        with unreplaced(gang, ranks[1]) as freed:
            # It lets others bind there, as a rank does, and listens before they can.
            taking = stack.enter_context(socket.create_server(freed))
        assert gang.next()["how"] == "killed by SIGKILL"
        for _ in range(2):
            failed = gang.next()
            assert (failed["event"], failed["rank"], failed["replaced"]) == ("exited", 1, True)
            how, why = failed["how"].split(": ", 1)
            assert how == "exited with status 1 before it served"
            assert f"{freed[0]}:{freed[1]}" in why
        taking.close()
        # One more may have met it.
        while (event := gang.next())["event"] == "exited":
            assert event["replaced"]
        assert event["event"] == "replaced"
        assert event["endpoints"] == ranks[1]["endpoints"]


def test_when_no_process_is_left_that_could_serve_the_gang_ends() -> None:
    with started(["--size", "1"]) as gang, ExitStack() as stack:
        gang.next()
        (rank,) = gang.next()["ranks"]
        with unreplaced(gang, rank) as freed:
            stack.enter_context(socket.create_server(freed))
        killed, failed, ended = gang.rest()
        assert (killed["replaced"], failed["replaced"]) == (True, False)
        assert ended == {"event": "ended", "reason": "every rank has exited"}
        assert gang.process.wait(END_TIMEOUT_S) == 1


def test_ranks_that_are_not_replaced_are_told_until_the_last() -> None:
    with started(["--size", "2", "--on-rank-exit", "leave"]) as gang:
        gang.next()
        for rank in gang.next()["ranks"]:
            os.kill(rank["pid"], signal.SIGKILL)
        *exited, ended = gang.rest()
        assert sorted((it["rank"], it["replaced"]) for it in exited) == [(0, False), (1, False)]
        assert ended == {"event": "ended", "reason": "every rank has exited"}
        assert gang.process.wait(END_TIMEOUT_S) == 1


def test_the_ranks_of_the_fake_backend_exit_together() -> None:
    with started(["--size", "3", "--backend", "fake"]) as gang:
        gang.next()
        pid = gang.next()["ranks"][0]["pid"]
        os.kill(pid, signal.SIGKILL)
        *exited, ended = gang.rest()
        assert [(it["event"], it["rank"], it["pid"]) for it in exited] == [
            ("exited", rank, pid) for rank in range(3)
        ]
        assert ended["event"] == "ended"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_the_reason_of_the_end(signum: signal.Signals) -> None:
    with started(["--size", "1", "--backend", "fake"]) as gang:
        gang.next()
        gang.next()
        gang.process.send_signal(signum)
        assert gang.rest() == [{"event": "ended", "reason": f"ended by {signum.name}"}]
        assert gang.process.wait(END_TIMEOUT_S) == (0 if signum is signal.SIGTERM else 128 + signum)


@pytest.mark.parametrize(
    ("options", "reason", "status"),
    [
        (["--size", "0"], "--size must be 1 or more", 2),
        (["--max-refs", "-1"], "limits must be positive", 2),
        (["--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"], "/nowhere/cert.pem", 2),
    ],
)
def test_what_cannot_be_had_is_the_only_line(options: list[str], reason: str, status: int) -> None:
    with started(options) as gang:
        [failed] = gang.rest()
        assert failed["event"] == "failed"
        assert reason in failed["reason"]
        assert gang.process.stderr is not None
        assert gang.process.stderr.read() == f"rankbridge up: {failed['reason']}\n"
        assert gang.process.wait(END_TIMEOUT_S) == status


def test_a_start_that_fails_ends_with_its_reason(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "endpoints.json"
    with started(["--size", "1", "--backend", "fake", "--endpoints-file", str(nowhere)]) as gang:
        starting, failed = gang.rest()
        assert starting["event"] == "starting"
        assert failed["event"] == "failed"
        assert str(nowhere.parent) in failed["reason"]
        assert gang.process.stderr is not None
        assert failed["reason"] in gang.process.stderr.read()
        assert gang.process.wait(END_TIMEOUT_S) == 1


def test_an_agent_whose_reader_is_gone_goes_on_until_its_input_closes() -> None:
    with started(["--size", "2", "--exit-on-stdin-close"]) as gang:
        gang.next()
        ranks = gang.next()["ranks"]
        gang.stdout.close()
        targets = [rank["endpoints"][0] for rank in ranks]
        with rankbridge.connect(targets, session=False) as client:
            with watched([ranks[1]["pid"]]) as lost:
                os.kill(ranks[1]["pid"], signal.SIGKILL)
                assert lost.alive_after(END_TIMEOUT_S) == []
            # The agent forks a replacement after it could not tell of the loss.
            assert client.form(timeout=START_TIMEOUT_S).generation == 2
            pids = [status.pid for status in client.status()]
        with watched(pids) as left:
            gang.stdin.close()
            assert gang.process.wait(END_TIMEOUT_S) == 0
            assert left.alive_after(END_TIMEOUT_S) == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("stop", "standard input said stop"),
        ("  stop\r", "standard input said stop"),
        ("please do not stop yet", "standard input was closed"),
        ("stopped", "standard input was closed"),
    ],
)
def test_only_a_line_that_says_stop_and_no_more_ends_a_gang(line: str, reason: str) -> None:
    with started(["--size", "1", "--backend", "fake", "--exit-on-stdin-close"]) as gang:
        gang.next()
        gang.next()
        gang.stdin.write(f"{line}\n")
        gang.stdin.flush()
        # The agent reads the line alone, and then the end.
        until(lambda: unread(gang.stdin.fileno()) == 0)
        gang.stdin.close()
        assert gang.rest() == [{"event": "ended", "reason": reason}]
        assert gang.process.wait(END_TIMEOUT_S) == 0


def unread(pipe: int) -> int:
    """Bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
