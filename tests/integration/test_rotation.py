"""Certificates and tokens that are replaced while ranks serve: the next connection and call have the new ones."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from tests.conftest import PATIENT
from tests.support.certificates import Certificate, self_signed, signed
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import RankBridgeError
from rankbridge_server.cli import main
from rankbridge_server.core.tokens import Tokens

TIMEOUT_S = 20.0


def serial(target: str, ca: Certificate) -> bytes:
    """The certificate that a rank shows to a new connection."""
    context = ssl.create_default_context(cafile=str(ca.cert))
    context.set_alpn_protocols(["h2"])
    host, _, port = target.rpartition(":")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as sock,
        context.wrap_socket(sock, server_hostname=host) as shown,
    ):
        return shown.getpeercert(binary_form=True) or b""


def install(new: Certificate, at: Certificate) -> None:
    """Puts a certificate and its key where others are, as people do: one after the other."""
    for name in ("key", "cert"):
        source, target = getattr(new, name), getattr(at, name)
        scratch = target.with_suffix(".new")
        scratch.write_bytes(source.read_bytes())
        scratch.chmod(0o600)
        scratch.replace(target)


def works(running: RunningGang, ca: Certificate) -> bool:
    with rankbridge.connect(running.tcp, tls=ca.channel(), timeout=TIMEOUT_S) as gang:
        gang.barrier()
        return True


def test_a_new_certificate_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    ca = self_signed(tmp_path, "ca")
    rank, other = signed(tmp_path, "rank", ca), signed(tmp_path, "other", ca)
    options = [*PATIENT, *rank.options, "--tls-ca", str(ca.cert)]
    with up(tmp_path, 2, options=options) as running:
        before = {serial(target, ca) for target in running.tcp_targets}
        with rankbridge.connect(running.tcp, tls=ca.channel(), timeout=TIMEOUT_S) as connected:
            connected.barrier()
            # Half of it is written: the old pair stays in use.
            rank.cert.write_text("-----BEGIN CERTIFICATE-----\n")
            until(lambda: works(running, ca) and {serial(it, ca) for it in running.tcp_targets} == before)
            install(other, rank)
            until(lambda: {serial(it, ca) for it in running.tcp_targets}.isdisjoint(before))
            # Who is connected stays so; ranks form with the new one.
            connected.barrier()
            assert connected.form().generation == 2
        assert works(running, ca)


@contextmanager
def gang_with_tokens(directory: Path) -> Iterator[tuple[RunningGang, Path]]:
    file = directory / "tokens"
    assert main(["tokens", str(file)]) == 0
    with up(directory, 2, "gloo", [*PATIENT, "--token-file", str(file)]) as running:
        yield running, file


def accepted(running: RunningGang, token: str) -> bool:
    try:
        with rankbridge.connect(running.tcp_targets, token=token, timeout=TIMEOUT_S) as gang:
            gang.barrier()
            return True
    except RankBridgeError:
        return False


def test_new_tokens_replace_the_old_ones_everywhere(tmp_path: Path) -> None:
    with gang_with_tokens(tmp_path) as (running, file):
        old, new = running.token, Tokens.new()
        file.write_text("half of")
        until(lambda: accepted(running, old))
        scratch = file.with_suffix(".new")
        scratch.write_text(new.to_json())
        scratch.chmod(0o600)
        scratch.replace(file)
        until(lambda: accepted(running, new.own))
        until(lambda: not accepted(running, old))
        # Who reads the endpoints file has them, too; ranks show each other the new one.
        until(lambda: new.own in running.endpoints_file.read_text())
        with rankbridge.connect(running.endpoints_file, timeout=TIMEOUT_S) as gang:
            assert gang.form().generation == 2
            gang.barrier()
        with rankbridge.connect(running.tcp_targets, token=new.own, timeout=TIMEOUT_S) as gang:
            assert gang.form().generation == 3
            gang.barrier()


def test_a_file_that_others_can_read_is_not_taken(tmp_path: Path) -> None:
    with gang_with_tokens(tmp_path) as (running, file):
        new = Tokens.new()
        # Before it has the new ones, so that at no moment it is as it ought to be.
        file.chmod(0o644)
        file.write_text(new.to_json())
        until(lambda: accepted(running, running.token))
        assert not accepted(running, new.own)
        file.chmod(0o600)
        until(lambda: accepted(running, new.own))


def test_a_hang_up_makes_a_rank_look_and_does_not_end_it(tmp_path: Path) -> None:
    ca = self_signed(tmp_path, "ca")
    rank, other = signed(tmp_path, "rank", ca), signed(tmp_path, "other", ca)
    command = [RANKBRIDGE, "rank", "--rank", "0", "--size", "1", "--listen", "127.0.0.1:0", *rank.options]
    with subprocess.Popen([*command, "--tls-ca", str(ca.cert)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            target = process.stdout.readline().split()[-1]
            before = serial(target, ca)
            install(other, rank)
            process.send_signal(signal.SIGHUP)
            until(lambda: serial(target, ca) != before)
            assert process.poll() is None
            with grpc.secure_channel(target, ca.channel()) as channel:
                grpc.channel_ready_future(channel).result(TIMEOUT_S)
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.parametrize("nonce", [b"", b"x" * 32])
def test_the_secret_of_links_is_not_what_the_commit_gives(nonce: bytes) -> None:
    tokens = Tokens.new()
    assert tokens.secret_of(nonce) != nonce
    assert tokens.secret_of(nonce) == tokens.secret_of(nonce)
    assert tokens.secret_of(nonce) != Tokens.new().secret_of(nonce)
    assert tokens.secret_of(nonce) != tokens.secret_of(nonce + b"y")
