"""Serves the page over HTTP: its files, and the stream of what changes. Reading only, and only with the key."""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import secrets
import socket
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...core.address import Address
from .browsers import Browsers, TooMany
from .source import Source

TIMEOUT_S = 10.0
"""For a request to come, and for a browser to take what it is sent."""
MOST_CONNECTIONS = 64
_END_S = 0.1
_TENSORS = re.compile(r"tensors/([0-9]{1,6})")
_STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
FILES = {it.name: it for it in _STATIC.iterdir() if it.suffix in _TYPES}
"""What is served, by its name: no path of a request ever is one of the file system's."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server:
    """Serves the page at an address, port 0 for any. Raises OSError when it cannot be had.

    `url`: where, with the key, which is another one each time. Who has it reads all that the page shows.
    """

    def __init__(self, at: Address, browsers: Browsers, source: Source) -> None:
        self.key = secrets.token_urlsafe(24)
        self._browsers = browsers
        self._http = _Http(at, self.key, browsers, source)
        port = int(self._http.server_address[1])
        self.url = f"http://{Address(at.host, port)}/{self.key}/"
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(_END_S,), name="page-http", daemon=True
        )

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it, and every browser's stream."""
        self._browsers.close()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # What is open when it ends, ends with its timeout.
    block_on_close = False
    request_queue_size = 32

    def __init__(self, at: Address, key: str, browsers: Browsers, source: Source) -> None:
        self.key, self.host, self.browsers, self.source = key, at.host, browsers, source
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        found = socket.getaddrinfo(at.host, at.port or 0, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        super().__init__((at.host, at.port or 0), _Handler)

    def server_bind(self) -> None:
        """Binds, without asking a name server for the host's name."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection, if there is room for it."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves it, and makes room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints an error of this server. A browser that goes away is none."""
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"rankbridge page: {type(error).__name__}: {error}", file=sys.stderr)

    def knows(self, host: str) -> bool:
        """Whether a request's `Host` can be of this server. A name that an attacker has made point here is not."""
        try:
            name = Address.parse(host).host
        except ValueError:
            return False
        if name.lower() in ("localhost", self.host.lower()):
            return True
        with suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        return False


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    timeout = TIMEOUT_S
    server_version, sys_version = "rankbridge", ""

    def do_GET(self) -> None:
        """Serves a file, or the stream."""
        if not self.server.knows(self.headers.get("Host", "")):
            self._refuse(HTTPStatus.FORBIDDEN, "This page is not served under that name.")
            return
        key, _, name = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not hmac.compare_digest(key.encode(), self.server.key.encode()):
            self._refuse(
                HTTPStatus.FORBIDDEN,
                "The key is missing or wrong: open the whole URL that the command has printed.",
            )
        elif name == "events":
            self._stream()
        elif name == "diagnose":
            self.server.source.ask()
            self._answer(HTTPStatus.OK, "text/plain; charset=utf-8", b"The ranks are asked.\n")
        elif (rank := _TENSORS.fullmatch(name)) is not None:
            content = json.dumps(self.server.source.tensors(int(rank[1]))).encode()
            self._answer(HTTPStatus.OK, "application/json", content)
        elif (file := FILES.get(name or "page.html")) is not None:
            self._answer(HTTPStatus.OK, _TYPES[file.suffix], file.read_bytes())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing by that name.")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses a request that is not a GET, or not HTTP, with a sentence."""
        is_method = code == HTTPStatus.NOT_IMPLEMENTED
        self._refuse(
            HTTPStatus.METHOD_NOT_ALLOWED if is_method else HTTPStatus(code),
            "This page is only read: GET." if is_method else (message or HTTPStatus(code).phrase),
        )

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: paths have the key."""

    def _stream(self) -> None:
        try:
            browser = self.server.browsers.add()
        except TooMany:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Too many browsers look at this page: close one.")
            return
        try:
            self._head(HTTPStatus.OK, "text/event-stream; charset=utf-8")
            for message in browser.messages():
                self.wfile.write(message)
        finally:
            self.server.browsers.remove(browser)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._answer(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._head(status, kind, len(content))
        self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str, size: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if size is not None:
            self.send_header("Content-Length", str(size))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
