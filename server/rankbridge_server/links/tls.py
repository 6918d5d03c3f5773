"""TLS on control links: a rank's certificate, the authorities that it trusts, and encrypted sockets."""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..core.address import Address

_PIECE = 16384


@dataclass(frozen=True, slots=True)
class LinkTls:
    """The TLS contexts of one rank's links. Both sides are rankbridge, so TLS 1.3 is the minimum.

    `accepting`: for links that others dial; requires their certificate if there is a client CA. `dialling`: for links
    that this rank dials; verifies the other's certificate and host, and presents its own.
    """

    accepting: ssl.SSLContext
    dialling: ssl.SSLContext

    @classmethod
    def load(cls, certificate: Path, key: Path, ca: Path, client_ca: Path | None) -> LinkTls:
        """Loads PEM files. `ca`: authority for ranks that this one dials. `client_ca`: for ranks that dial this one.

        Raises OSError, of which ssl.SSLError is one, or ValueError for a key with a passphrase.
        """
        accepting = _context(ssl.PROTOCOL_TLS_SERVER, certificate, key)
        # Sessions are not resumed, so the accepting side sends nothing after the handshake.
        accepting.num_tickets = 0
        if client_ca is not None:
            accepting.verify_mode = ssl.CERT_REQUIRED
            accepting.load_verify_locations(client_ca)
        dialling = _context(ssl.PROTOCOL_TLS_CLIENT, certificate, key)
        dialling.load_verify_locations(ca)
        return cls(accepting, dialling)

    def accepted(self, sock: socket.socket) -> socket.socket:
        """Encrypts an accepted link; `recv` does the handshake step by step. Unix sockets stay plain."""
        return sock if sock.family == socket.AF_UNIX else TlsSocket(sock, self.accepting, server_side=True)

    def dialled(self, sock: socket.socket, address: str, timeout: float) -> socket.socket:
        """Encrypts a dialled link to "host:port" after a handshake of `timeout` seconds. Unix sockets stay plain.

        Raises ConnectionError, and closes the socket then.
        """
        if sock.family == socket.AF_UNIX:
            return sock
        host = Address.parse(address).host
        deadline = time.monotonic() + timeout
        try:
            sock = TlsSocket(sock, self.dialling, server_hostname=host)
            sock.shake_hands(deadline)
        except (OSError, ValueError) as error:
            sock.close()
            raise ConnectionError(f"{address}: {error}") from error
        return sock


class TlsSocket(socket.socket):
    """A connected socket that encrypts and decrypts.

    OpenSSL's state has a lock of its own, which no thread holds while it waits for the socket: one thread may receive
    while others send.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, **side: Any) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, **side)
        # Nothing can fail from here on; the plain socket is detached.
        super().__init__(fileno=sock.detach())
        self.setblocking(True)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._shaken = False
        self._ended = False
        self._failure = ""

    def shake_hands(self, deadline: float) -> None:
        """Waits for the end of the handshake until `deadline`, by `time.monotonic`. Raises ConnectionError."""
        poll = select.poll()
        poll.register(self, select.POLLIN)
        while not self._shake():
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise ConnectionError("TLS: no handshake in time")
            if not self._take_in():
                raise ConnectionError("TLS: it hung up during the handshake")

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Decrypts everything that has come, however large `bufsize` is; empty at the end. Never waits.

        Leaves nothing that could be decrypted, so polling the socket is enough. Raises BlockingIOError when more must
        come first, ConnectionError for data that is not TLS or not trusted.
        """
        with self._lock:
            if not self._take_in():
                return b""
            opened = self._open() if self._shaken or self._shake() else b""
        if not opened and not self._ended:
            raise BlockingIOError(errno.EAGAIN, "more is to come")
        return opened

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Encrypts and sends. Raises OSError."""
        with self._sending:
            with self._lock:
                if self._failure or not self._shaken:
                    raise ConnectionError(self._failure or "TLS: nothing is said before the handshake")
                left = memoryview(data)
                while left:
                    left = left[self._tls.write(left) :]
                sealed = self._outgoing.read()
            super().sendall(sealed, flags)

    def send(self, *_: Any) -> int:
        """Not supported: it would send plain text."""
        raise NotImplementedError("use sendall")

    def recv_into(self, *_: Any) -> int:
        """Not supported: it would receive encrypted data."""
        raise NotImplementedError("use recv")

    def close(self) -> None:
        """Reads what is left, then closes: a socket closed with unread data drops the data that it has sent."""
        with suppress(OSError):
            while super().recv(_PIECE, socket.MSG_DONTWAIT):
                continue
        super().close()

    def _take_in(self) -> bool:
        """Passes encrypted data on to OpenSSL; returns False at the end."""
        if self._failure:
            raise ConnectionError(self._failure)
        sealed = b"" if self._ended else super().recv(_PIECE, socket.MSG_DONTWAIT)
        self._incoming.write(sealed)
        return bool(sealed)

    def _shake(self) -> bool:
        """Continues the handshake; returns whether it has ended."""
        try:
            self._tls.do_handshake()
            self._shaken = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            # OpenSSL has an alert for the other side.
            with suppress(OSError):
                self._say()
            self._fail(error)
        self._say()
        return self._shaken

    def _say(self) -> None:
        said = self._outgoing.read()
        try:
            sent = super().send(said, socket.MSG_DONTWAIT) if said else 0
        except BlockingIOError:
            sent = 0
        # The data of a handshake fits into the empty buffer of a new socket.
        if sent < len(said):
            raise ConnectionError("TLS: it does not take what is said to it")

    def _open(self) -> bytes:
        opened = b""
        try:
            # Asking OpenSSL for data that it does not have costs an exception.
            while self._incoming.pending or self._tls.pending():
                opened += self._tls.read(_PIECE)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        except ssl.SSLError as error:
            self._fail(error)
        return opened

    def _fail(self, error: ssl.SSLError) -> NoReturn:
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = error.verify_message
        else:
            reason = (error.reason or str(error)).lower().replace("_", " ")
        self._failure = f"TLS: {reason}"
        raise ConnectionError(self._failure) from error


def _context(protocol: int, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # As in gRPC, a trusted certificate need not be a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_cert_chain(certificate, key, password=_no_passphrase)
    return context


def _no_passphrase() -> str:
    raise ValueError("it has a passphrase, and nobody to ask for it")
