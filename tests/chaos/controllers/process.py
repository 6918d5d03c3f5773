"""The process of the Elixir controller, and the lines that go to and fro (elixir_client/test/support/chaos)."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.chaos.controllers.forms import Json, value_of

CLIENT = Path(__file__).resolve().parents[3] / "elixir_client"
COMMAND = (
    *("mix", "run", "--no-compile", "--no-deps-check"),
    *("-e", "RankBridge.Test.Chaos.Controller.main()"),
)
# More than the client's own timeout for what chaos asks it to do, on a busy machine.
PATIENCE_S = 45.0
_START_S = 120.0
_COMPILE_S = 300.0
_END_S = 20.0
# Of what it logged, in an error.
_SHOWN = 2000
_ENVIRONMENT = {"MIX_ENV": "test", "ELIXIR_ERL_OPTIONS": "+fnu", "LC_ALL": "C.UTF-8"}


class ElixirMissingError(Exception):
    """Elixir is not there, or does not compile its client."""


class NoAnswerError(TimeoutError):
    """The Elixir controller said nothing in time, or has ended."""


def compile_client(project: Path = CLIENT) -> None:
    """Compiles the Elixir client and its test support; or a project that depends on it.

    Raises:
        ElixirMissingError: It cannot be done; the message says why, and what helps.
    """
    if shutil.which("mix") is None:
        raise ElixirMissingError("Elixir is needed, and there is no `mix`: `make setup` installs it")
    done = subprocess.run(
        ["mix", "compile"],
        cwd=project,
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_COMPILE_S,
    )
    if done.returncode != 0:
        raise ElixirMissingError(f"the Elixir client does not compile:\n{done.stdout}{done.stderr}")


class Asked:
    """One request, whose answer may not be there yet."""

    def __init__(self, process: ElixirProcess, number: int, what: str) -> None:
        """Made by the process."""
        self._process = process
        self._number = number
        self._what = what
        self.answer: Future[Json] = Future()

    def value(self, timeout: float) -> Any:
        """Waits `timeout` seconds at most for what the request gives; see `value_of`.

        Raises:
            NoAnswerError: There is none.
        """
        try:
            answer = self.answer.result(timeout)
        except NoAnswerError:
            raise
        except TimeoutError:
            self._process.lost = True
            raise NoAnswerError(
                f"the Elixir controller did not answer {self._what} in {timeout:g} s"
            ) from None
        return value_of(answer)

    def kill(self) -> None:
        """Kills the Elixir process that does it."""
        self._process.send({"do": "kill", "of": self._number})


class ElixirProcess:
    """The program, from `with` to its end; use it once. It ends with this process, however that ends.

    Attributes:
        lost: Whether it has left a request without an answer, or has ended before it was told to.
    """

    def __init__(
        self,
        log: Path,
        command: Sequence[str] = COMMAND,
        patience: float = PATIENCE_S,
        project: Path = CLIENT,
    ) -> None:
        """Starts nothing yet.

        Args:
            log: File for what it writes to standard error.
            command: What to start.
            patience: Longest time until an answer, in seconds.
            project: Folder of the project of which it is.
        """
        self.lost = False
        self.patience = patience
        self._log = log
        self._project = project
        self._command = command
        self._numbers = itertools.count()
        self._asked: dict[int, Asked] = {}
        self._lock = threading.Lock()
        self._ready: Future[str] = Future()
        self._told_to_end = False

    def __enter__(self) -> Self:
        """Starts it, and waits until it is ready. Raises NoAnswerError."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._project,
                env={**os.environ, **_ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # A signal from the terminal is for this process, which then closes its standard input.
                process_group=0,
            )
        self._reader = threading.Thread(target=self._read, name="elixir-answers", daemon=True)
        self._reader.start()
        try:
            self._ready.result(_START_S)
        except TimeoutError as error:
            self.kill()
            self.__exit__(None, None, None)
            raise NoAnswerError(f"the Elixir controller did not begin: {error}; {self.logged()}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tells it to end by the end of its input; kills it when it does not."""
        self._told_to_end = True
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(0.0 if self.lost else _END_S)
        except subprocess.TimeoutExpired:
            self.lost = True
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def another(self) -> ElixirProcess:
        """One more, not started yet, whose log is beside this one's."""
        log = self._log.with_name(f"{self._log.stem}-{time.monotonic_ns()}{self._log.suffix}")
        return ElixirProcess(log, self._command, self.patience)

    def logged(self) -> str:
        """What it has written to standard error."""
        return self._log.read_text(errors="replace").strip()

    def kill(self) -> None:
        """SIGKILL."""
        self._told_to_end = True
        self._process.kill()
        self._process.wait()

    def begin(self, what: str, **fields: Any) -> Asked:
        """Makes a request, and does not wait for the answer."""
        number = next(self._numbers)
        asked = self._asked[number] = Asked(self, number, what)
        self.send({"id": number, "do": what, **fields})
        return asked

    def ask(self, what: str, **fields: Any) -> Any:
        """Makes a request, and gives what comes of it; see `Asked.value`."""
        return self.begin(what, **fields).value(self.patience)

    def send(self, line: Json) -> None:
        """Writes a line. When nobody reads it any more, that shows in what is not answered."""
        assert self._process.stdin is not None
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        if self._process.poll() is not None:
            self._end()

    def take(self, line: bytes) -> None:
        """Takes in a line of it. Raises LookupError or ValueError: it is no answer to anything."""
        if self._ready.done():
            answer = json.loads(line)
            self._asked.pop(answer.pop("id")).answer.set_result(answer)
        elif line == b"ready\n":
            self._ready.set_result("ready")
        else:
            raise ValueError("it is not ready")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self.take(line)
            except (LookupError, ValueError) as error:
                self._give_up(f"said {line!r}, which is no answer: {error!r}")
        self._process.wait()
        self._end()

    def _end(self) -> None:
        self._give_up(f"has ended, with status {self._process.returncode}: {self.logged()[-_SHOWN:]}")

    def _give_up(self, why: str) -> None:
        self.lost = self.lost or not self._told_to_end
        error = NoAnswerError(f"the Elixir controller {why}")
        if not self._ready.done():
            self._ready.set_exception(error)
        # One at a time: another thread may ask, or give up, as well.
        while self._asked:
            with contextlib.suppress(KeyError):
                self._asked.popitem()[1].answer.set_exception(error)
