"""Where controllers on this host have their streams without gRPC: a unix socket beside gRPC's own."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from .executing import Streams
from .local_stream import LocalStream

SUFFIX = ".stream"
"""What follows the path of gRPC's socket."""
# What a failure to accept may be about: file descriptors that others give back.
_PAUSE_S = 0.1


class LocalStreams:
    """Listens at a path, to which a stale socket gives way. Raises OSError when it cannot."""

    def __init__(self, streams: Streams, path: str) -> None:
        self._streams = streams
        self._path = Path(path)
        self._lock = threading.Lock()
        self._open: set[LocalStream] = set()
        self._stopped = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            self._listener.bind(path)
            self._listener.listen(socket.SOMAXCONN)
        except OSError:
            self._listener.close()
            raise

    def start(self) -> None:
        """Begin to accept."""
        threading.Thread(target=self._accept, name="local-streams", daemon=True).start()

    def stop(self, grace: float) -> None:
        """Accept nothing more. Streams that have not come to their end in `grace` seconds are cut off."""
        end = time.monotonic() + grace
        with self._lock:
            self._stopped = True
            streams = list(self._open)
        self._path.unlink(missing_ok=True)
        # Wakes who accepts.
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
            self._begin(LocalStream(sock))
        self._listener.close()

    def _begin(self, stream: LocalStream) -> None:
        with self._lock:
            self._open.add(stream)
            if self._stopped:
                stream.cut()
        threading.Thread(target=self._serve, args=(stream,), name="execute", daemon=True).start()

    def _serve(self, stream: LocalStream) -> None:
        try:
            stream.serve(self._streams)
        finally:
            with self._lock:
                self._open.discard(stream)
