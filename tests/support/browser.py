"""A headless Chromium, driven by its DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

from tests.support.waiting import PATIENCE_S

CHROMIUM = shutil.which("chromium-headless-shell")
_ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
    ),
    *("--no-default-browser-check", "--remote-debugging-pipe", "--force-color-profile=srgb"),
    # Nothing but loopback is ever asked for an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


class Browser:
    """A browser with an empty profile."""

    def __init__(self, process: subprocess.Popen[bytes], read: int, write: int) -> None:
        self._process, self._read, self._write = process, read, write
        self._number = 0
        self._rest = b""
        self._answers: dict[int, Any] = {}
        self.events: deque[dict[str, Any]] = deque(maxlen=10_000)

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Calls a method, and gives its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while number not in self._answers:
            self._receive(deadline - time.monotonic())
        answer = self._answers.pop(number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def open(self, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> Tab:
        """Opens a page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, target, session)
        for domain in ("Page", "Network", "Runtime", "Log"):
            tab.call(f"{domain}.enable")
        # As if it were the one in front: keys go to it.
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Page.navigate", url=url)
        tab.until("location.href != 'about:blank' && document.readyState == 'complete'")
        return tab

    def _receive(self, seconds: float) -> None:
        assert select([self._read], [], [], max(0.0, seconds))[0], "the browser does not answer"
        data = os.read(self._read, 1 << 20)
        assert data, "the browser has ended"
        *messages, self._rest = (self._rest + data).split(b"\0")
        for it in map(json.loads, messages):
            if "id" in it:
                self._answers[it["id"]] = it
            else:
                self.events.append(it)


class Tab:
    """A page in the browser."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def call(self, method: str, **params: Any) -> Any:
        """Calls a method of the page."""
        return self._browser.call(method, self._session, **params)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until an expression is true, and gives its value."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < deadline, f"{expression} did not come true:\n{self.text('body')}"
            time.sleep(0.02)
        return value

    def text(self, selector: str) -> str:
        """The text of an element as it is seen; of a part of a picture, which is not laid out, as it is."""
        found = (
            f"(it => it?.innerText ?? it?.textContent ?? '')(document.querySelector({json.dumps(selector)}))"
        )
        return str(self.evaluate(found))

    def press(self, key: str) -> None:
        """Presses a key."""
        names = {" ": "Space"}
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=names.get(key, key), **text)

    def move(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path) -> None:
        """Writes what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def requests(self) -> list[str]:
        """The URLs of all requests."""
        return [it["params"]["request"]["url"] for it in self._events("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What the console has to complain of."""
        thrown = [str(it["params"]["exceptionDetails"]) for it in self._events("Runtime.exceptionThrown")]
        return thrown + [str(it["params"]["entry"]) for it in self._events("Log.entryAdded")]

    def close(self) -> None:
        """Closes it."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def _events(self, method: str) -> list[dict[str, Any]]:
        # An answer brings with it what has happened before.
        self.call("Runtime.evaluate", expression="1")
        return [
            it
            for it in self._browser.events
            if it["method"] == method and it.get("sessionId") == self._session
        ]


@contextmanager
def browser(directory: Path) -> Iterator[Browser]:
    """Starts a browser whose profile is in the directory; on leaving, it has ended."""
    assert CHROMIUM is not None
    (commands, write), (read, answers) = os.pipe(), os.pipe()
    # It reads from 3 and writes to 4.
    shell = f'exec {CHROMIUM} "$@" 3<&{commands} 4>&{answers}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *_ARGUMENTS, f"--user-data-dir={directory}", "about:blank"],
        pass_fds=(commands, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(commands)
    os.close(answers)
    made = Browser(process, read, write)
    try:
        yield made
        made.call("Browser.close")
    finally:
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(read)
        os.close(write)
