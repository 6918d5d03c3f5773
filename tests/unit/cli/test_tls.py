"""The TLS options of `up` and `rank`: what is refused before a rank is there, and what is said of it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from tests.support.certificates import (
    Certificate,
    of_edwards_curve,
    self_signed,
    signed,
    with_passphrase,
)

from rankbridge_server.cli.options import Options
from rankbridge_server.cli.tls import TlsError, tls_of, tls_options
from rankbridge_server.sidecar.tls import Tls


@dataclass(frozen=True)
class Files:
    directory: Path
    ca: Certificate
    stranger: Certificate
    rank: Certificate
    server_only: Certificate


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    directory = tmp_path_factory.mktemp("certificates")
    ca = self_signed(directory, "ca")
    (directory / "garbage").write_text("no PEM at all")
    (directory / "broken").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    (directory / "empty").touch()
    return Files(
        directory,
        ca,
        self_signed(directory, "stranger"),
        signed(directory, "rank", ca),
        signed(directory, "server-only", ca, extensions="extendedKeyUsage=serverAuth\n"),
    )


def read(*arguments: str | Path, host: str | None = None) -> Tls | None:
    command = click.Command("rank", params=list(tls_options()))
    options = Options(**command.make_context("rank", [str(it) for it in arguments]).params)
    return tls_of(options, host)


def refusal(*arguments: str | Path, host: str | None = None) -> str:
    with pytest.raises(TlsError) as caught:
        read(*arguments, host=host)
    return str(caught.value)


def test_without_options_there_is_no_tls() -> None:
    assert read() is None


def test_a_certificate_that_signed_itself_is_what_its_ranks_trust(files: Files) -> None:
    tls = read(*files.ca.options)
    assert tls is not None
    assert (tls.ca, tls.client_ca) == (files.ca.cert.read_bytes(), None)


def test_without_a_ca_any_certificate_is_what_its_ranks_trust(files: Files) -> None:
    tls = read(*files.rank.options, host="127.0.0.1")
    assert tls is not None
    assert tls.ca == files.rank.cert.read_bytes()


def test_everything_that_is_named_is_read(files: Files) -> None:
    tls = read(*files.rank.options, "--tls-ca", files.ca.cert, "--tls-client-ca", files.ca.cert)
    assert tls is not None
    assert tls.certificate == files.rank.cert.read_bytes()
    assert tls.key == files.rank.key.read_bytes()
    assert tls.ca == tls.client_ca == files.ca.cert.read_bytes()


def test_a_client_ca_of_its_own_works_once_it_vouches_for_the_ranks_too(files: Files, tmp_path: Path) -> None:
    said = refusal(*files.rank.options, "--tls-client-ca", files.stranger.cert)
    assert f"--tls-client-ca {files.stranger.cert}" in said
    assert str(files.rank.cert) in said
    both = tmp_path / "both.pem"
    both.write_bytes(files.stranger.cert.read_bytes() + files.rank.cert.read_bytes())
    assert read(*files.rank.options, "--tls-client-ca", both) is not None


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (("--tls-cert", "rank.cert.pem"), "--tls-key"),
        (("--tls-key", "rank.key.pem"), "--tls-cert"),
        (("--tls-client-ca", "ca.cert.pem"), "--tls-cert"),
        (("--tls-ca", "ca.cert.pem"), "--tls-cert"),
        (("--tls-cert", "rank.cert.pem", "--tls-client-ca", "ca.cert.pem"), "--tls-key"),
    ],
)
def test_options_that_make_no_sense_alone_name_what_is_missing(
    files: Files, options: tuple[str, ...], missing: str
) -> None:
    placed = [it if it.startswith("--") else files.directory / it for it in options]
    said = refusal(*placed)
    assert said.startswith(f"{placed[0]} {placed[1]}: ")
    assert missing in said


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key", "--tls-ca", "--tls-client-ca"])
@pytest.mark.parametrize("name", ["nowhere", ".", "garbage", "broken", "empty"])
def test_a_file_that_is_no_good_is_named_with_its_option(files: Files, option: str, name: str) -> None:
    bad = files.directory / name
    given: dict[str, Path] = {"--tls-cert": files.rank.cert, "--tls-key": files.rank.key, option: bad}
    said = refusal(*(it for pair in given.items() for it in pair))
    assert said.startswith(f"{option} {bad}: ")


def test_a_key_of_another_certificate_is_refused(files: Files) -> None:
    said = refusal("--tls-cert", files.rank.cert, "--tls-key", files.ca.key)
    assert said.startswith(f"--tls-key {files.ca.key}: it is not the key")
    assert str(files.rank.cert) in said


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(files: Files) -> None:
    encrypted = with_passphrase(files.rank.key, "a passphrase")
    said = refusal("--tls-cert", files.rank.cert, "--tls-key", encrypted)
    assert said.startswith(f"--tls-key {encrypted}: it has a passphrase")


def test_a_key_that_grpc_does_not_take_is_refused(files: Files) -> None:
    assert "gRPC takes" in refusal(*of_edwards_curve(files.directory).options)


def test_ranks_that_could_not_connect_to_each_other_are_not_started(files: Files) -> None:
    said = refusal(*files.rank.options, "--tls-ca", files.stranger.cert)
    assert said.startswith(f"--tls-ca {files.stranger.cert}: it does not verify")
    assert read(*files.server_only.options, "--tls-ca", files.ca.cert) is not None
    said = refusal(*files.server_only.options, "--tls-client-ca", files.ca.cert)
    assert said.startswith(f"--tls-client-ca {files.ca.cert}: it does not verify")
    assert "purpose" in said


@pytest.mark.parametrize("host", ["10.1.2.3", "elsewhere"])
def test_a_certificate_for_another_host_is_refused(files: Files, host: str) -> None:
    said = refusal(*files.rank.options, "--tls-ca", files.ca.cert, host=host)
    assert said.startswith(f"--tls-cert {files.rank.cert}: it is not valid for {host!r}")
    assert "--advertise" in said


def test_a_rank_without_a_host_cannot_be_known_by_it(files: Files) -> None:
    said = refusal(*files.rank.options, host="")
    assert said.startswith(f"--tls-cert {files.rank.cert}: ")
    assert "--advertise" in said


def test_what_is_secret_is_never_shown(files: Files) -> None:
    tls = read(*files.rank.options)
    lines = [line for line in files.rank.key.read_text().splitlines() if not line.startswith("---")]
    assert lines
    shown = [repr(tls), repr(tls.links if tls else None)]
    # A key where a certificate is wanted: its content is no part of what is said.
    shown.append(refusal("--tls-cert", files.rank.key, "--tls-key", files.rank.key))
    shown.append(refusal("--tls-cert", files.rank.cert, "--tls-key", files.rank.cert))
    for text in shown:
        assert not any(line in text or repr(base64.b64decode(line + "==")) in text for line in lines)


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o602, 0o644])
def test_a_key_that_others_can_read_or_change_is_refused(files: Files, mode: int) -> None:
    files.rank.key.chmod(mode)
    try:
        said = refusal("--tls-cert", files.rank.cert, "--tls-key", files.rank.key, "--tls-ca", files.ca.cert)
    finally:
        files.rank.key.chmod(0o600)
    assert said == f"--tls-key {files.rank.key}: others can read or change it: chmod 600 {files.rank.key}"
