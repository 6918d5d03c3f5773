"""The listener for streams without gRPC, for controllers on this host: a unix socket beside gRPC's own."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from ...core import engine_threads
from ...core.audit import Audit
from ...core.peer_user import is_trusted, peer_of
from .executing import Streams
from .local_stream import LocalStream

SUFFIX = ".stream"
"""The suffix to the path of gRPC's socket."""
# Accepting may fail for want of file descriptors; others close theirs meanwhile.
_PAUSE_S = 0.1


class LocalStreams:
    """Listens at a path for this user and root, and replaces a stale socket there. Raises OSError."""

    def __init__(self, streams: Streams, path: str, audit: Audit | None = None) -> None:
        self._streams = streams
        self._path = Path(path)
        self._audit = audit
        self._lock = threading.Lock()
        self._open: set[LocalStream] = set()
        self._stopped = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            self._listener.bind(path)
            self._path.chmod(0o600)
            self._listener.listen(socket.SOMAXCONN)
        except OSError:
            self._listener.close()
            raise

    def start(self) -> None:
        """Begins to accept."""
        threading.Thread(target=self._accept, name="local-streams", daemon=True).start()

    def stop(self, grace: float) -> None:
        """Accepts nothing more. Cuts the streams that have not ended within `grace` seconds."""
        end = time.monotonic() + grace
        with self._lock:
            self._stopped = True
            streams = list(self._open)
        self._path.unlink(missing_ok=True)
        # Wakes the accepting thread.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for stream in streams:
            stream.over.wait(max(0.0, end - time.monotonic()))
            stream.cut()

    def _accept(self) -> None:
        while not self._stopped:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if not self._stopped:
                    time.sleep(_PAUSE_S)
                continue
            trusted = is_trusted(sock)
            if self._audit is not None:
                peer = "unix:pid {}, user {}".format(*peer_of(sock))
                if trusted:
                    self._audit.admitted(peer, "user of the ranks", "own")
                else:
                    self._audit.refused(peer, "stream", "another user")
            if trusted:
                self._begin(LocalStream(sock))
            else:
                sock.close()
        self._listener.close()

    def _begin(self, stream: LocalStream) -> None:
        with self._lock:
            self._open.add(stream)
            if self._stopped:
                stream.cut()
        engine_threads.start("execute", lambda: self._serve(stream))

    def _serve(self, stream: LocalStream) -> None:
        try:
            stream.serve(self._streams)
        finally:
            with self._lock:
                self._open.discard(stream)
