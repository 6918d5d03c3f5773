"""Who is served the page, and who is not: over real sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.made_records import MadeRecords
from tests.support.waiting import until

from rankbridge_server.cli.page import browsers as of_browsers
from rankbridge_server.cli.page.browsers import MOST, MOST_WAITING, Browser, Browsers
from rankbridge_server.cli.page.model import Model
from rankbridge_server.cli.page.server import FILES, HEADERS, MOST_CONNECTIONS, Server
from rankbridge_server.core.address import Address

TIMEOUT_S = 30.0


class Served:
    """A page of a source that makes up operations."""

    def __init__(self) -> None:
        self.model = Model("mine", "gang", admits=True)
        self.source = MadeRecords(self.model, 8, 200.0)
        self.browsers = Browsers(self.model, self.source)
        self.server = Server(Address("127.0.0.1", 0), self.browsers, self.source)
        self.at = urlsplit(self.server.url)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer."""
        connection = HTTPConnection(self.at.hostname or "", self.at.port, timeout=TIMEOUT_S)
        with closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    def stream(self, stack: ExitStack) -> HTTPResponse:
        """The stream of events."""
        connection = stack.enter_context(
            closing(HTTPConnection(self.at.hostname or "", self.at.port, timeout=TIMEOUT_S))
        )
        connection.request("GET", f"{self.at.path}events")
        return stack.enter_context(connection.getresponse())


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    made.server.start()
    yield made
    made.server.stop()


def events(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_with_the_key_each_file_is_served(served: Served) -> None:
    for name in ("", *FILES):
        status, headers, text = served.ask(served.at.path + name)
        assert (status, text) == (200, FILES[name or "page.html"].read_text())
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert headers["Content-Type"].startswith("text/")
    assert "script-src 'self'" in HEADERS["Content-Security-Policy"]
    assert HEADERS["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("name", ["", "events", "diagnose", "page.js", "nothing"])
@pytest.mark.parametrize("key", ["", "/wrong", "{half}", "{key}x", "/%00", "//"])
def test_without_the_key_nothing_is_served(served: Served, name: str, key: str) -> None:
    own = served.at.path.rstrip("/")
    path = key.format(half=own[:-3], key=own) + f"/{name}"
    status, headers, text = served.ask(path)
    assert status == 403
    assert text == "The key is missing or wrong: open the whole URL that the command has printed.\n"
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert served.source.starts == served.source.asked == 0


def test_keys_are_others_each_time(served: Served) -> None:
    other = Served()
    other.server.start()
    try:
        assert served.server.key != other.server.key
        assert len(served.server.key) >= 32
        assert served.ask(f"/{other.server.key}/")[0] == 403
    finally:
        other.server.stop()


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:9418", "", "localhost.evil:1", "[::1"]
)
def test_a_name_that_was_made_to_point_here_is_refused(served: Served, host: str) -> None:
    status, _, text = served.ask(served.at.path, Host=host)
    assert (status, text) == (403, "This page is not served under that name.\n")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:{port}"])
def test_addresses_and_localhost_are_served(served: Served, host: str) -> None:
    assert served.ask(served.at.path, Host=host.format(port=served.at.port))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "X"])
def test_it_is_only_read(served: Served, method: str) -> None:
    status, headers, text = served.ask(served.at.path, method=method)
    assert status == 405
    assert headers["Content-Security-Policy"]
    assert text == ("" if method == "HEAD" else "This page is only read: GET.\n")


@pytest.mark.parametrize(
    "name", ["../server.py", "%2e%2e/server.py", "..%2fserver.py", "/etc/passwd", "page.html/"]
)
def test_no_path_leads_out_of_the_page(served: Served, name: str) -> None:
    status, _, text = served.ask(served.at.path + name)
    assert (status, text) == (404, "There is nothing by that name.\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /\xc3\xa4\xff/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % it for it in range(200)) + b"\r\n",
    ],
)
def test_what_no_browser_sends_is_refused(served: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.at.port or 0), TIMEOUT_S) as connection:
        connection.sendall(sent)
        answer = b""
        # What it has not read, it resets.
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                answer += part
    assert served.server.key.encode() not in answer
    assert b" 200 " not in answer
    assert served.ask(served.at.path)[0] == 200


def test_the_source_is_asked_while_somebody_looks_and_not_otherwise(served: Served) -> None:
    assert served.source.starts == 0
    with ExitStack() as stack:
        first = events(served.stream(stack))
        whole = next(first)
        assert whole["reset"]
        assert whole["header"]["size"] == 8
        second = events(served.stream(stack))
        assert next(second)["reset"]
        counts = [it["ended"]["count"] for it in (next(first), next(first)) if "ended" in it]
        assert served.source.starts == 1
        assert len(served.browsers) == 2
        assert all(counts)
    until(lambda: len(served.browsers) == 0)
    until(lambda: served.source._ended.is_set())
    with ExitStack() as stack:
        assert next(events(served.stream(stack)))["reset"]
    assert served.source.starts == 2


def test_what_a_rank_holds_is_asked_for(served: Served) -> None:
    status, headers, text = served.ask(f"{served.at.path}tensors/3")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(text) == {"tensors": [{"ref": "of rank 3"}], "why": ""}
    for name in ("tensors/", "tensors/-1", "tensors/x", "tensors/1/2", "tensors/" + "9" * 5000):
        assert served.ask(served.at.path + name)[0] == 404


def test_a_verdict_is_asked_for(served: Served) -> None:
    assert served.ask(f"{served.at.path}diagnose")[0] == 200
    assert served.source.asked == 1


def test_one_browser_too_many_is_told_so(served: Served) -> None:
    with ExitStack() as stack:
        streams = [served.stream(stack) for _ in range(MOST)]
        assert {it.status for it in streams} == {200}
        status, _, text = served.ask(f"{served.at.path}events")
        assert (status, text) == (503, "Too many browsers look at this page: close one.\n")
    until(lambda: len(served.browsers) == 0)
    with ExitStack() as stack:
        assert served.stream(stack).status == 200


def test_who_holds_connections_is_one_of_so_many(served: Served) -> None:
    with ExitStack() as stack:
        held = [
            stack.enter_context(socket.create_connection(("127.0.0.1", served.at.port or 0), TIMEOUT_S))
            for _ in range(MOST_CONNECTIONS + 8)
        ]
        # The last ones are closed at once.
        assert held[-1].recv(1) == b""
    until(lambda: _is_served(served))


def test_a_slow_browser_is_cut_off_and_holds_up_nobody() -> None:
    browser = Browser()
    for _ in range(MOST_WAITING + 1):
        browser.send(b"data: 1\n\n")
    assert list(browser.messages()) == []


def test_what_waits_for_a_browser_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_browsers, "MOST_WAITING_BYTES", 100)
    browser = Browser()
    # The first message may be large: it is all that there is.
    browser.send(b"x" * 500)
    messages = browser.messages()
    assert next(messages) == b"x" * 500
    browser.send(b"x" * 60)
    browser.send(b"x" * 60)
    assert list(messages) == []


def test_where_nothing_happens_a_comment_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_browsers, "HEARTBEAT_S", 0.01)
    browser = Browser()
    assert next(browser.messages()).startswith(b":")


def test_its_end_ends_every_stream(served: Served) -> None:
    with ExitStack() as stack:
        stream = events(served.stream(stack))
        next(stream)
        stopping = threading.Thread(target=served.server.stop)
        stopping.start()
        assert all(isinstance(it, dict) for it in stream)
        stopping.join(TIMEOUT_S)
        assert not stopping.is_alive()
    # The fixture stops it again.
    served.server.stop = lambda: None  # type: ignore[method-assign]


def _is_served(served: Served) -> bool:
    try:
        return served.ask(served.at.path)[0] == 200
    except OSError:
        return False
