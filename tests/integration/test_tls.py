"""Gangs that speak TLS on TCP, and only there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from tests.support.certificates import Certificate, self_signed, signed
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S, RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang

SIZE = 3
# Nobody is lost here for being slow; who is killed is seen by the end of its links.
PATIENT = ["--heartbeat-misses", "300"]
TIMEOUT_S = 60
# What an HTTP/2 client in plain text begins with: the preface and empty SETTINGS.
PLAIN_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@dataclass(frozen=True)
class Certificates:
    """An authority and a rank and a client that it vouches for; somebody that it does not know."""

    ca: Certificate
    rank: Certificate
    client: Certificate
    stranger: Certificate


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory = tmp_path_factory.mktemp("certificates")
    ca = self_signed(directory, "ca")
    return Certificates(
        ca, signed(directory, "rank", ca), signed(directory, "client", ca), self_signed(directory, "stranger")
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningGang]:
    """Ranks that show a certificate."""
    options = [*PATIENT, *certificates.rank.options, "--tls-ca", str(certificates.ca.cert)]
    with up(tmp_path_factory.mktemp("tls"), SIZE, options=options) as gang:
        yield gang


@pytest.fixture(scope="module")
def demanding(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningGang]:
    """Ranks that show a certificate, and demand one."""
    ca = str(certificates.ca.cert)
    options = [*PATIENT, *certificates.rank.options, "--tls-ca", ca, "--tls-client-ca", ca]
    with up(tmp_path_factory.mktemp("mutual-tls"), SIZE, options=options) as gang:
        yield gang


def works(gang: Gang) -> bool:
    refs = gang.put([np.full(5, rank, np.int64) for rank in range(len(gang))])
    results = gang.get(gang.all_reduce(refs))
    gang.release(refs)
    expected = sum(range(len(gang)))
    return all(isinstance(it, np.ndarray) and it.tolist() == [expected] * 5 for it in results)


def refused(running: RunningGang, tls: grpc.ChannelCredentials | None) -> rankbridge.UnavailableError:
    """The error of a client that no rank lets in; nothing of it has reached a rank."""
    with (
        pytest.raises(rankbridge.UnavailableError) as caught,
        rankbridge.connect(running.tcp, tls=tls, timeout=TIMEOUT_S),
    ):
        pass
    for outcome in caught.value.outcomes:  # type: ignore[attr-defined]
        assert running.tcp_targets[outcome.rank] in outcome.error.message
        assert not outcome.error.indefinite
    return caught.value


def test_a_gang_is_driven_and_formed_over_tcp_with_tls(
    running: RunningGang, certificates: Certificates
) -> None:
    with rankbridge.connect(running.endpoints_file, tls=certificates.ca.channel()) as gang:
        assert list(gang.targets) == running.tcp_targets
        assert works(gang)
        # The rank that forms connects to the others at the same targets.
        before = gang.status()[0].generation
        assert gang.form(via_rank=1).generation == before + 1
        assert works(gang)


def test_unix_sockets_of_the_same_gang_are_plain(running: RunningGang) -> None:
    with rankbridge.connect(running.targets) as gang:
        assert works(gang)
        gang.form()
        assert works(gang)


def test_a_client_that_speaks_plain_text_is_told_what_may_be_wrong(running: RunningGang) -> None:
    assert "does it speak TLS" in refused(running, None).message


def test_plain_text_gets_no_answer(running: RunningGang) -> None:
    for target in running.tcp_targets:
        host, port = target.split(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as stranger:
            stranger.sendall(PLAIN_HTTP2)
            try:
                answer = stranger.recv(9)
            except ConnectionResetError:
                answer = b""
            # Either nothing, or an alert of TLS (21); SETTINGS of HTTP/2 would begin with their length.
            assert answer[:1] in (b"", b"\x15")


def test_a_client_that_does_not_know_the_authority_refuses_the_ranks(
    running: RunningGang, certificates: Certificates
) -> None:
    assert "CERTIFICATE_VERIFY_FAILED" in refused(running, certificates.stranger.channel()).message


def test_a_client_with_a_certificate_is_let_in_where_one_is_demanded(
    demanding: RunningGang, certificates: Certificates
) -> None:
    tls = certificates.ca.channel(shown=certificates.client)
    with rankbridge.connect(demanding.description, tls=tls) as gang:
        assert works(gang)
        # Ranks show their own certificate to each other.
        before = gang.status()[0].generation
        assert gang.form(via_rank=2).generation == before + 1
        assert works(gang)


def test_a_client_without_a_certificate_is_refused_where_one_is_demanded(
    demanding: RunningGang, certificates: Certificates
) -> None:
    refused(demanding, certificates.ca.channel())


def test_a_client_with_a_strangers_certificate_is_refused(
    demanding: RunningGang, certificates: Certificates
) -> None:
    refused(demanding, certificates.ca.channel(shown=certificates.stranger))


def test_a_replacement_speaks_tls_at_the_same_port(tmp_path: Path, certificates: Certificates) -> None:
    # Without --tls-ca: the certificate itself is what the ranks trust, and what the client does.
    alone = self_signed(tmp_path, "alone")
    with (
        up(tmp_path, SIZE, options=[*PATIENT, *alone.options]) as running,
        rankbridge.connect(running.tcp, tls=alone.channel(), session=False) as gang,
    ):
        assert works(gang)
        pid = running.pids[1]
        os.kill(pid, signal.SIGKILL)
        until(lambda: gang[0].status().generation_error is not None)
        assert gang.form().generation == 2
        assert gang[1].status().pid != pid
        assert works(gang)
        assert "CERTIFICATE_VERIFY_FAILED" in refused(running, certificates.ca.channel()).message


def cli(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RANKBRIDGE, *arguments],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        env=environ,
        check=False,
    )


@pytest.mark.parametrize("command", [("up", "--size", "1"), ("rank", "--rank", "0", "--size", "1")])
def test_files_that_are_no_good_end_the_command_before_a_rank_is_there(
    certificates: Certificates, command: tuple[str, ...]
) -> None:
    good, other = certificates.rank, certificates.stranger
    environ = {key: value for key, value in os.environ.items() if key != "MASTER_ADDR"}
    done = cli(*command, "--tls-cert", str(good.cert), "--tls-key", str(other.key), environ=environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rankbridge {command[0]}: --tls-key {other.key}: it is not the key")
    assert "Traceback" not in done.stderr
    assert "importing" not in done.stderr


def test_status_and_call_reach_ranks_that_speak_tls(
    demanding: RunningGang, certificates: Certificates
) -> None:
    targets = ["--endpoints", str(demanding.endpoints_file), "--timeout", str(TIMEOUT_S)]
    shown = cli("status", *targets, "--tls-ca", str(certificates.ca.cert), *certificates.client.options)
    assert (shown.returncode, "world" in shown.stdout) == (0, True), shown.stderr
    called = cli(
        "call", "barrier", *targets, "--tls-ca", str(certificates.ca.cert), *certificates.client.options
    )
    assert (called.returncode, called.stdout) == (0, "null\n")
    refused = cli("status", *targets, "--tls-ca", str(certificates.ca.cert))
    assert (refused.returncode, "UNAVAILABLE" in refused.stdout) == (1, True)
    half = cli("status", *targets, "--tls-ca", str(certificates.ca.cert), *certificates.client.options[:2])
    assert (half.returncode, "--tls-cert goes with --tls-key" in half.stderr) == (1, True)


def test_a_certificate_of_the_authority_is_no_token(
    demanding: RunningGang, certificates: Certificates
) -> None:
    tls = certificates.ca.channel(shown=certificates.client)
    with pytest.raises(rankbridge.RankBridgeError, match="no token") as caught:
        rankbridge.connect(demanding.tcp_targets, tls=tls, timeout=TIMEOUT_S).close()
    assert "UNAUTHENTICATED" in repr(caught.value) + str(caught.value)
    for role, may in (("observe", False), ("own", True)):
        token = demanding.description["tokens"][role]
        with rankbridge.connect(
            demanding.tcp_targets, tls=tls, token=token, session=False, timeout=TIMEOUT_S
        ) as gang:
            assert [status.generation_state for status in gang.status()] == ["formed"] * SIZE
            if may:
                gang.barrier()
            else:
                with pytest.raises(rankbridge.RankBridgeError, match="needs drive"):
                    gang.barrier()


def test_a_name_in_a_certificate_has_the_role_that_it_was_given(
    tmp_path: Path, certificates: Certificates
) -> None:
    ca = certificates.ca
    spiffe = "spiffe://example.org/ns/jobs/sa/trainer"
    roles = {"dashboard.example.org": "observe", spiffe: "drive", "captain": "own"}
    given = [argument for name, role in roles.items() for argument in ("--tls-role", f"{name}={role}")]
    options = [
        *PATIENT,
        *certificates.rank.options,
        "--tls-ca",
        str(ca.cert),
        "--tls-client-ca",
        str(ca.cert),
    ]

    def shown(name: str, *names: str) -> grpc.ChannelCredentials:
        return ca.channel(shown=signed(tmp_path, name, ca, names or ("DNS:elsewhere",)))

    with up(tmp_path, 2, "fake", [*options, *given]) as running:

        def connect(tls: grpc.ChannelCredentials, **options: Any) -> Gang:
            return rankbridge.connect(running.tcp_targets, tls=tls, timeout=TIMEOUT_S, **options)

        with connect(shown("dashboard", "DNS:dashboard.example.org"), session=False) as gang:
            assert [it.generation_state for it in gang.status()] == ["formed"] * 2
            with pytest.raises(rankbridge.RankBridgeError, match="the caller may observe"):
                gang.barrier()
        with connect(shown("trainer", f"URI:{spiffe}")) as trainer:
            assert works(trainer)
            ref = trainer[0].create("float32", ())
            with pytest.raises(rankbridge.RankBridgeError, match="the call needs own"):
                trainer.form()
            # Another with the same role by the common name, and the owner.
            with connect(shown("captain")) as captain:
                assert works(captain)
                sessions = {it.session_id for it in captain[0].status().sessions}
                assert any(it.startswith("~") and it.endswith(f"/{ref.session_id}") for it in sessions)
                assert captain.form().generation == 2
        with pytest.raises(rankbridge.RankBridgeError, match="no token"):
            connect(shown("nobody")).close()


@pytest.mark.parametrize("role", ["dashboard", "dashboard=king", "=own"])
def test_a_role_that_is_none_ends_the_command(role: str) -> None:
    ended = cli("up", "--tls-role", role)
    assert (ended.returncode, "must be NAME=ROLE" in ended.stderr) == (2, True)


def test_roles_of_certificates_that_nobody_shows_end_the_command() -> None:
    ended = cli("up", "--tls-role", "dashboard=observe")
    assert (ended.returncode, "without --tls-client-ca" in ended.stderr) == (2, True)
