"""A program that answers each line of its input with a line of its output."""

from __future__ import annotations

import base64
import json
import shlex
import shutil
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ..bounded import GRACE_S, DidNotReturn, bounded

_MOST_SHOWN = 200
_SPAWNER = ThreadPoolExecutor(1, "program-spawner")
"""The kernel ends programs with the thread that has started them: this one lasts as long as the process."""


class ProgramError(Exception):
    """A program cannot be started, or has not answered as it should. It has ended."""


class Program:
    """One process. Its calls come one after another.

    `command`: as a shell would split it. Raises ProgramError.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._count = 0
        self._using = threading.Lock()
        self._closed = False
        # A program that neither reads nor ends would outlive a rank that is killed.
        dying = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        try:
            words = shlex.split(command)
            if not words or shutil.which(words[0]) is None:
                raise FileNotFoundError("there is no such program")
            self._process = _SPAWNER.submit(_start, [*dying, *words]).result()
        except (OSError, ValueError) as error:
            raise ProgramError(f"{command} cannot be started: {error}") from error

    def ask(self, do: str, timeout: float, **words: Any) -> Mapping[str, Any]:
        """Sends a request; returns its answer. Raises ProgramError.

        Bytes of requests are written in base64, under that word.
        """
        self._count += 1
        request = {"id": self._count, "do": do, "timeout_ms": max(1, int(timeout * 1000)), **words}
        try:
            line = bounded(lambda: self._exchanged(request), timeout + GRACE_S, "program")
            return self._understood(line)
        except DidNotReturn as error:
            self.close()
            raise ProgramError(f"{self._command}: {error} from {do}") from error
        except (OSError, ValueError) as error:
            # Its pipes are broken, or closed.
            self.close()
            raise ProgramError(self._ended()) from error
        except ProgramError:
            self.close()
            raise

    def close(self) -> None:
        """Ends it."""
        self._closed = True
        self._process.kill()
        self._process.wait()
        # A thread that still uses the pipes closes them itself: who closed them here might wait for that.
        if self._using.acquire(blocking=False):
            self._using.release()
            self._close_pipes()

    def _close_pipes(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()

    def _exchanged(self, request: Mapping[str, Any]) -> bytes:
        written = {
            name: base64.b64encode(it).decode() if isinstance(it, bytes) else it
            for name, it in request.items()
        }
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            with self._using:
                stdin.write(json.dumps(written).encode() + b"\n")
                stdin.flush()
                return stdout.readline()
        finally:
            if self._closed:
                self._close_pipes()

    def _understood(self, line: bytes) -> Mapping[str, Any]:
        if not line:
            raise ProgramError(self._ended())
        try:
            answer = json.loads(line)
            if answer["id"] != self._count:
                raise ValueError(f"expected an answer with id {self._count}")
            if "error" in answer:
                raise ProgramError(f"{self._command}: {answer['error']['message']}")
            given = answer["ok"]
            if not isinstance(given, dict):
                raise ValueError("ok is no object")
        except (ValueError, TypeError, LookupError) as error:
            shown = line[:_MOST_SHOWN].decode(errors="replace").rstrip()
            raise ProgramError(f"{self._command}: this is no answer ({error!r}): {shown}") from error
        return given

    def _ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        return f"{self._command} has ended with status {self._process.poll()}"


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
