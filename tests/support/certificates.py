"""Certificates for tests, made with `openssl`: authorities, and what they vouch for."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import grpc

LOOPBACK = ("IP:127.0.0.1", "DNS:localhost")
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as PEM files."""

    cert: Path
    key: Path

    @property
    def options(self) -> list[str]:
        """What `rankbridge up` and `rank` take."""
        return ["--tls-cert", str(self.cert), "--tls-key", str(self.key)]

    def channel(self, shown: Certificate | None = None) -> grpc.ChannelCredentials:
        """Credentials of a client that trusts this certificate, and shows another if it is asked for one."""
        pair = (None, None) if shown is None else (shown.key.read_bytes(), shown.cert.read_bytes())
        return grpc.ssl_channel_credentials(self.cert.read_bytes(), *pair)


def self_signed(directory: Path, name: str, names: tuple[str, ...] = LOOPBACK) -> Certificate:
    """A certificate that vouches for itself, for hosts such as "DNS:localhost"; an authority, too."""
    it = _named(directory, name)
    alternatives = f"subjectAltName={','.join(names)}"
    _openssl(
        *("req", "-x509", "-days", "2", "-subj", f"/CN={name}", "-addext", alternatives, *_NEW_KEY),
        *("-keyout", str(it.key), "-out", str(it.cert)),
    )
    return it


def signed(
    directory: Path,
    name: str,
    authority: Certificate,
    names: tuple[str, ...] = LOOPBACK,
    extensions: str = "",
) -> Certificate:
    """A certificate that an authority vouches for; `extensions`: more lines of openssl's."""
    it, request, extension = _named(directory, name), directory / f"{name}.csr", directory / f"{name}.ext"
    extension.write_text(f"subjectAltName={','.join(names)}\n{extensions}")
    _openssl("req", "-subj", f"/CN={name}", *_NEW_KEY, "-keyout", str(it.key), "-out", str(request))
    _openssl(
        *(
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            str(request),
            "-extfile",
            str(extension),
            "-out",
            str(it.cert),
        ),
        *("-CA", str(authority.cert), "-CAkey", str(authority.key), "-CAcreateserial"),
    )
    return it


def with_passphrase(key: Path, passphrase: str) -> Path:
    """The same key, encrypted."""
    encrypted = key.with_suffix(".encrypted.pem")
    _openssl(
        *("pkcs8", "-topk8", "-in", str(key), "-out", str(encrypted)),
        *("-v2", "aes-256-cbc", "-passout", f"pass:{passphrase}"),
    )
    return encrypted


def of_edwards_curve(directory: Path) -> Certificate:
    """A certificate of a kind of key that gRPC does not take."""
    it = _named(directory, "edwards")
    _openssl(
        *("req", "-x509", "-days", "2", "-subj", "/CN=edwards", "-newkey", "ed25519", "-nodes"),
        *("-keyout", str(it.key), "-out", str(it.cert)),
    )
    return it


def _named(directory: Path, name: str) -> Certificate:
    return Certificate(directory / f"{name}.cert.pem", directory / f"{name}.key.pem")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=_TIMEOUT_S)
