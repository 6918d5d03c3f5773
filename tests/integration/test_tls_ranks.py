"""Ranks that a launcher starts, with TLS on everything that they say to each other over TCP, but the data."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.support.certificates import Certificate, self_signed, signed
from tests.support.prepared import Forked, rankbridge as rankbridge_command
from tests.support.proc import open_files
from tests.support.waiting import until
from torch._C._distributed_c10d import TCPStore

import rankbridge
from rankbridge import Gang
from rankbridge_server.links import wire

SIZE = 3
TIMEOUT_S = 60
HANDSHAKE, ALERT = b"\x16", b"\x15"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("authority"), "ca")


@contextmanager
def rank(number: int, size: int, options: Sequence[str], environ: dict[str, str]) -> Iterator[Forked]:
    """A rank as a launcher starts it; on leaving, it has ended."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("MASTER_ADDR", "MASTER_PORT")}
    command = ["rank", "--rank", str(number), "--size", str(size), *options]
    with rankbridge_command(command, inherited | environ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: Forked, beginning: str) -> str:
    """The next line of a rank that begins so."""
    assert process.stdout is not None
    for it in process.stdout:
        if it.startswith(beginning):
            return it
    raise AssertionError(f"the rank ended and did not say {beginning!r}")


def works(gang: Gang) -> bool:
    refs = gang.put([np.full(5, number, np.int64) for number in range(len(gang))])
    results = gang.get(gang.all_reduce(refs))
    expected = sum(range(len(gang)))
    return all(isinstance(it, np.ndarray) and it.tolist() == [expected] * 5 for it in results)


@pytest.mark.parametrize("mutual", [False, True], ids=["ranks show certificates", "clients do, too"])
def test_launched_ranks_form_work_and_lose_one_over_tls(
    ca: Certificate, tmp_path: Path, mutual: bool
) -> None:
    store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    launcher = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    file = tmp_path / "endpoints.json"
    # Nobody is lost here for being slow; who is killed is seen by the end of its links.
    options = ["--endpoints-file", str(file), "--tls-ca", str(ca.cert), "--heartbeat-misses", "300"]
    if mutual:
        options += ["--tls-client-ca", str(ca.cert)]
    with ExitStack() as stack:
        # Every rank has a certificate of its own, as on hosts of their own.
        ranks = [
            stack.enter_context(
                rank(number, SIZE, [*signed(tmp_path, f"rank-{number}", ca).options, *options], launcher)
            )
            for number in range(SIZE)
        ]
        line(ranks[0], f"ready: {SIZE} ranks")
        described = json.loads(file.read_text())
        targets = [it["endpoints"][0] for it in described["ranks"]]
        token = described["tokens"]["own"]
        tls = ca.channel(shown=signed(tmp_path, "controller", ca) if mutual else None)
        with rankbridge.connect(file, tls=tls, session=False) as gang:
            assert works(gang)
            pending = [gang[number].start("barrier", timeout=TIMEOUT_S) for number in range(SIZE - 1)]
            until(lambda: all(gang[it].status().pending_operations == 1 for it in range(SIZE - 1)))
            ranks[-1].send_signal(signal.SIGKILL)
            for it in pending:
                with pytest.raises(rankbridge.PeerLostError) as caught:
                    it.result()
                assert [detail.rank for detail in caught.value.ranks] == [SIZE - 1]
        with rankbridge.connect(targets[:-1], tls=tls, token=token, session=False) as smaller:
            assert smaller.form().generation == 2
            assert works(smaller)
        links = link_port(ranks[0].pid, targets[0], ca)
        # Somebody who knew even the form of a hello is not heard in plain text.
        with socket.create_connection(("127.0.0.1", links), TIMEOUT_S) as stranger:
            stranger.sendall(wire.hello(2, 1, b"", "world"))
            assert stranger.recv(1) in (ALERT, b"")


def test_ranks_of_two_authorities_do_not_form_a_gang(ca: Certificate, tmp_path: Path) -> None:
    other = self_signed(tmp_path, "other")
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(
                rank(
                    number, 2, [*signed(tmp_path, f"rank-{number}", it).options, "--tls-ca", str(it.cert)], {}
                )
            )
            for number, it in enumerate((ca, other))
        ]
        targets = [line(it, "rank ").split()[-1] for it in ranks]
        tokens = json.loads(Path(line(ranks[0], "tokens ").split()[-1]).read_text())
        trusting = tmp_path / "both.pem"
        trusting.write_bytes(ca.cert.read_bytes() + other.cert.read_bytes())
        tls = Certificate(trusting, trusting).channel()
        with rankbridge.connect(targets, tls=tls, token=tokens["own"], session=False) as gang:
            with pytest.raises(rankbridge.FormingFailedError) as caught:
                gang.form(timeout=6)
            assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value)
            assert targets[1] in str(caught.value)


def link_port(pid: int, target: str, ca: Certificate) -> int:
    """The port of a rank that is not gRPC's and answers TLS: that of its control links. The backend's do not."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=str(ca.cert)).wrap_bio(
        ssl.MemoryBIO(), out, server_hostname="127.0.0.1"
    )
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    greeting = out.read()
    with ExitStack() as stack:
        poll, by_fd = select.poll(), {}
        for port in listening(pid) - {int(target.rpartition(":")[2])}:
            try:
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 1.0))
            except (ConnectionRefusedError, TimeoutError):
                # A backend: the last generation's, which is closed meanwhile, or this one's, which hears nobody.
                continue
            sock.sendall(greeting)
            poll.register(sock, select.POLLIN)
            by_fd[sock.fileno()] = sock, port
        while events := poll.poll(TIMEOUT_S * 1000):
            for fd, _ in events:
                sock, port = by_fd[fd]
                # A backend that is closed meanwhile may reset it.
                with suppress(ConnectionResetError):
                    if sock.recv(1) == HANDSHAKE:
                        return port
                poll.unregister(fd)
    raise AssertionError("no port but gRPC's answers TLS")


def listening(pid: int) -> set[int]:
    """The TCP ports at which a process listens."""
    held = set(open_files(pid))
    ports = set()
    for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in held:
            ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
