"""TLS on what a rank serves over TCP: its options, and their files, read and checked before any rank is there."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import click

from ..core.reread import Reread
from ..core.tokens import GUEST_ROLES, Role
from ..links.tls import LinkTls
from ..sidecar.tls import Tls
from .options import FILE, Option, Options

_OPTIONS = {
    "--tls-cert": "certificate of the ranks, PEM, with its chain",
    "--tls-key": "its private key, PEM, without passphrase",
    "--tls-client-ca": "clients must show a certificate that one of these vouches for; so must ranks, with --tls-cert",
    "--tls-ca": "who vouches for the other ranks that a rank connects to (default: the certificate in --tls-cert)",
}

# X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_OTHER_HOST = (62, 64)

# How the public key of such a certificate begins, in DER.
_EDWARDS_KEYS = (bytes.fromhex("302a300506032b6570032100"), bytes.fromhex("3043300506032b6571033a00"))


class TlsError(ValueError):
    """A TLS option or its file is wrong. The text names both, and contains no secret."""


TLS_NOTE = {
    "TLS": "For gRPC and control links over TCP, which then speak nothing else. Unix sockets are guarded by their "
    "permissions. The data between ranks is the backend's own, and stays plain."
}


def tls_options() -> list[Option]:
    """The options that `up` and `rank` share."""
    return [
        *(Option(it, section="TLS", type=FILE, metavar="FILE", help=text) for it, text in _OPTIONS.items()),
        Option(
            "--tls-role",
            section="TLS",
            type=_role,
            multiple=True,
            metavar="NAME=ROLE",
            help="a client whose certificate has this name (a DNS name, a URI such as a SPIFFE id, or the common name) "
            "may observe, drive or own without a token; may be repeated; needs --tls-client-ca",
        ),
    ]


def reread_tls(options: Options, host: str | None = None) -> Reread[Tls] | None:
    """What `tls_of` gives, read again when its files change. Raises TlsError."""
    if tls_of(options, host) is None:
        return None
    paths = [getattr(options, it[2:].replace("-", "_")) for it in _OPTIONS]

    def load() -> Tls:
        tls = tls_of(options, host)
        assert tls is not None
        return tls

    return Reread([path for path in paths if path is not None], load)


def tls_of(options: Options, host: str | None = None) -> Tls | None:
    """The TLS of the options; None: plain text. `host`: must be in the certificate. Raises TlsError."""
    cert, key, client_ca, ca = (getattr(options, it[2:].replace("-", "_")) for it in _OPTIONS)
    if options.tls_role and client_ca is None:
        raise TlsError("--tls-role: no client shows a certificate without --tls-client-ca")
    if cert is None and key is None:
        for option, path in (("--tls-client-ca", client_ca), ("--tls-ca", ca)):
            if path is not None:
                raise TlsError(f"{option} {path}: there is no TLS without --tls-cert and --tls-key")
        return None
    if cert is None:
        raise TlsError(f"--tls-key {key}: its certificate is missing, --tls-cert")
    if key is None:
        raise TlsError(f"--tls-cert {cert}: its key is missing, --tls-key")
    tls = Tls(
        certificate=_certificates("--tls-cert", cert),
        key=_key(key),
        ca=_certificates("--tls-cert", cert) if ca is None else _certificates("--tls-ca", ca),
        client_ca=None if client_ca is None else _certificates("--tls-client-ca", client_ca),
        links=_links(cert, key, ca, client_ca),
        roles=dict(options.tls_role),
    )
    _try(_links(cert, key, ca, client_ca), host, cert, ca, client_ca)
    return tls


def _role(text: str) -> tuple[str, Role]:
    name, _, role = text.rpartition("=")
    roles = {"own": Role.OWN, **GUEST_ROLES}
    if not name or role not in roles:
        raise click.BadParameter(f"must be NAME=ROLE, with one of {', '.join(roles)}: not {text!r}")
    return name, roles[role]


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{option} {path}: {error.strerror}") from error


def _key(path: Path) -> bytes:
    data = _read("--tls-key", path)
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IRWXO):
        raise TlsError(f"--tls-key {path}: others can read or change it: chmod 600 {path}")
    return data


def _certificates(option: str, path: Path) -> bytes:
    data = _read(option, path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:
        raise TlsError(f"{option} {path}: it holds no certificate in PEM form") from error
    return data


def _links(cert: Path, key: Path, ca: Path | None, client_ca: Path | None) -> LinkTls:
    # The certificates are valid, so the key is wrong, or does not belong to them.
    try:
        return LinkTls.load(cert, key, ca or cert, client_ca)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(
                f"--tls-key {key}: it is not the key of the certificate in --tls-cert {cert}"
            ) from error
        if error.reason is None:
            raise TlsError(f"--tls-key {key}: it holds no private key in PEM form") from error
        raise TlsError(f"--tls-cert {cert}: {error.reason.lower().replace('_', ' ')}") from error
    except (OSError, ValueError) as error:
        raise TlsError(f"--tls-key {key}: {error}") from error


def _try(links: LinkTls, host: str | None, cert: Path, ca: Path | None, client_ca: Path | None) -> None:
    """Checks that a rank can connect to itself, because ranks with the same files must connect to each other."""
    links.dialling.check_hostname = host is not None
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        dialling = links.dialling.wrap_bio(down, up, server_hostname=host)
    except ValueError as error:
        raise TlsError(_not_valid_for(host, cert)) from error
    accepting = links.accepting.wrap_bio(up, down, server_side=True)
    sides = [dialling, accepting]
    while sides:
        side = sides.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            sides.append(side)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in _OTHER_HOST:
                raise TlsError(_not_valid_for(host, cert)) from error
            option, path = ("--tls-client-ca", client_ca) if side is accepting else ("--tls-ca", ca)
            if path is None:
                raise TlsError(f"--tls-cert {cert}: {error.verify_message}") from error
            problem = f"{option} {path}: it does not verify the certificate in --tls-cert {cert}"
            raise TlsError(f"{problem}, which ranks show to each other: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise TlsError(f"--tls-cert {cert}: {error.reason or error}") from error
    shown = dialling.getpeercert(binary_form=True) or b""
    if any(kind in shown for kind in _EDWARDS_KEYS):
        raise TlsError(f"--tls-cert {cert}: gRPC takes keys of RSA and ECDSA, not of Ed25519 or Ed448")


def _not_valid_for(host: str | None, cert: Path) -> str:
    return (
        f"--tls-cert {cert}: it is not valid for {host!r}, where other ranks reach this one (see --advertise)"
    )
