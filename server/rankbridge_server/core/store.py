"""A small key-value store of one generation: rank 0 keeps it, the others reach it over the control links of "world"."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .errors import BridgeError, ErrorCode, exhausted, invalid
from .gang_calls.messages import Relay, RelayKind

if TYPE_CHECKING:
    from .generation import Generation

MAX_VALUE_BYTES = 4 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024
"""Of all keys and values."""
_WORLD = "world"


class _Waiting(NamedTuple):
    """A request that waits for keys. `answer`: called with the result once they are there."""

    keys: Sequence[str]
    due: float
    read: Callable[[], bytes]
    answer: Callable[[bytes], None]


class Shelf:
    """The keys and values on rank 0. Thread-safe; answers come from the thread that brings the last missing key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, bytes] = {}
        self._bytes = 0
        self._waiting: list[_Waiting] = []

    def do(self, request: bytes, answer: Callable[[bytes], None]) -> None:
        """Does a request of `GenerationStore`, and calls `answer` with its result, now or when the keys are there."""
        header, _, value = request.partition(b"\n")
        what, keys, number, timeout = json.loads(header)
        with self._lock:
            if what in ("get", "wait"):
                read = partial(self._values.__getitem__, keys[0]) if what == "get" else bytes
                if not all(key in self._values for key in keys):
                    now = time.monotonic()
                    self._waiting = [it for it in self._waiting if it.due > now]
                    self._waiting.append(_Waiting(keys, now + timeout, read, answer))
                    return
                result, ready = read(), []
            else:
                result = self._change(what, keys, number, value)
                ready = [it for it in self._waiting if all(key in self._values for key in it.keys)]
                self._waiting = [it for it in self._waiting if it not in ready]
            answers = [(answer, result), *((it.answer, it.read()) for it in ready)]
        for each, found in answers:
            each(found)

    def _change(self, what: str, keys: Sequence[str], number: int, value: bytes) -> bytes:
        match what:
            case "set":
                return self._put(keys[0], value)
            case "add":
                total = str(self._counter(keys[0]) + number).encode()
                return self._put(keys[0], total) or total
            case "compare_set":
                expected, desired = value[:number], value[number:]
                there = self._values.get(keys[0])
                if there == expected or (there is None and not expected):
                    return self._put(keys[0], desired) or desired
                return expected if there is None else there
            case "check":
                return b"1" if all(key in self._values for key in keys) else b""
            case "delete":
                gone = self._values.pop(keys[0], None)
                self._bytes -= 0 if gone is None else len(keys[0]) + len(gone)
                return b"" if gone is None else b"1"
            case _:
                return str(len(self._values)).encode()

    def _counter(self, key: str) -> int:
        value = self._values.get(key, b"0")
        try:
            return int(value)
        except ValueError:
            got = repr(value[:40])
            raise invalid(
                f"{key!r} of the generation's store is no counter", expected="a number", got=got
            ) from None

    def _put(self, key: str, value: bytes) -> bytes:
        before = self._values.get(key)
        more = len(value) - len(before) if before is not None else len(key) + len(value)
        if self._bytes + more > MAX_BYTES:
            raise exhausted(
                f"the generation's store has no room for {key!r}",
                most=f"{MAX_BYTES} bytes",
                got=str(self._bytes + more),
            )
        self._values[key] = value
        self._bytes += more
        return b""


class GenerationStore:
    """The store as one rank reaches it. Thread-safe. Whatever waits gets the generation's error at once when it ends.

    Every method raises that error; RESOURCE_EXHAUSTED for too large a value, or too many; INVALID_ARGUMENT for an
    addition to what is no number; and TimeoutError.
    """

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._shelf = Shelf() if generation.rank == 0 else None
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[bytes]] = {}

    def set(self, key: str, value: bytes) -> None:
        """Sets a key."""
        self._ask("set", [key], value=value)

    def get(self, key: str, timeout: float) -> bytes:
        """The value of a key, for which it waits, at most `timeout` seconds."""
        return self._ask("get", [key], timeout=timeout)

    def add(self, key: str, number: int) -> int:
        """Adds to a key, which counts from 0; returns its new value."""
        return int(self._ask("add", [key], number=number))

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """Sets a key if its value is the expected one, or it has none and none is expected; returns its value then."""
        return self._ask("compare_set", [key], number=len(expected), value=expected + desired)

    def wait(self, keys: Sequence[str], timeout: float) -> None:
        """Waits until all keys are there, at most `timeout` seconds."""
        self._ask("wait", list(keys), timeout=timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return bool(self._ask("check", list(keys)))

    def delete(self, key: str) -> bool:
        """Deletes a key; returns whether it was there."""
        return bool(self._ask("delete", [key]))

    def count(self) -> int:
        """The number of keys."""
        return int(self._ask("count", []))

    def receive(self, relay: Relay) -> None:
        """Acts on a relay of a request or of its answer. The reader of the links calls it."""
        if relay.kind is RelayKind.STORED:
            asked = self._asked.get(relay.number)
            if asked is not None:
                _settle(asked, relay.body)
        elif self._shelf is not None:
            back = relay._replace(source=relay.target, target=relay.source, kind=RelayKind.STORED)

            def answer(result: bytes) -> None:
                # A rank that is gone needs no answer.
                with suppress(OSError):
                    self._generation.links.group(_WORLD).relay(back._replace(body=b"+" + result))

            try:
                self._shelf.do(relay.body, answer)
            except BridgeError as error:
                with suppress(OSError):
                    self._generation.links.group(_WORLD).relay(back._replace(body=b"-" + _packed(error)))

    def _ask(
        self, what: str, keys: list[str], *, number: int = 0, value: bytes = b"", timeout: float = 60.0
    ) -> bytes:
        if len(value) > MAX_VALUE_BYTES:
            got = f"{len(value)} bytes of {keys[0]!r}"
            raise exhausted(
                "too large a value for the generation's store", most=f"{MAX_VALUE_BYTES} bytes", got=got
            )
        request = json.dumps([what, keys, number, timeout]).encode() + b"\n" + value
        asked: Future[bytes] = Future()
        self._generation.await_end(asked, lambda error: _fail(asked, BridgeError(error.failure)))
        try:
            self._send(asked, request)
            answer = asked.result(timeout)
        except FutureTimeoutError:
            raise TimeoutError(
                f"{what} {keys} of generation {self._generation.number}: {timeout} s"
            ) from None
        finally:
            self._generation.forget_end(asked)
        if answer[:1] == b"-":
            raise _unpacked(answer[1:])
        return answer[1:]

    def _send(self, asked: Future[bytes], request: bytes) -> None:
        if self._shelf is not None:
            self._shelf.do(request, lambda result: _settle(asked, b"+" + result))
            return
        relay = Relay(self._generation.rank, 0, next(self._numbers), RelayKind.STORE, request)
        self._asked[relay.number] = asked
        asked.add_done_callback(lambda _: self._forget(relay.number))
        try:
            self._generation.links.group(_WORLD).relay(relay)
        except OSError as error:
            raise self._generation.error or BridgeError.of(ErrorCode.ABORTED, str(error)) from error

    def _forget(self, number: int) -> None:
        self._asked.pop(number, None)


def _packed(error: BridgeError) -> bytes:
    it = error.failure
    return json.dumps([it.code.name, it.message, it.expected, it.got]).encode()


def _unpacked(data: bytes) -> BridgeError:
    code, message, expected, got = json.loads(data)
    return BridgeError.of(ErrorCode[code], message, expected=expected, got=got)


def _settle(asked: Future[bytes], answer: bytes) -> None:
    with suppress(InvalidStateError):
        asked.set_result(answer)


def _fail(asked: Future[bytes], error: BridgeError) -> None:
    with suppress(InvalidStateError):
        asked.set_exception(error)
