"""Gang calls that come to one rank and that another leads."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ..alarms import Alarms
from ..errors import BridgeError, ErrorCode
from ..generation import Generation
from ..groups.group import WORLD
from ..lane import Courier
from ..task import VERDICT_GRACE, late
from .messages import Relay, RelayKind
from .route import Route


class BegunCall(Protocol):
    """A gang call that another rank has relayed, under way."""

    @property
    def withdraw(self) -> Callable[[], None]:
        """Withdraws the call."""

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback`, which must be quick, when the response is ready."""

    def packed(self) -> bytes:
        """The serialized response, once it is ready. Raises nothing."""


class RelayedCalls:
    """The calls that this rank has relayed, and those that others have relayed to it. Safe to call from any thread."""

    def __init__(self, begin: Callable[[bytes], BegunCall], alarms: Alarms) -> None:
        """`begin`: begins a gang call that another rank has relayed."""
        self._begin = begin
        self._alarms = alarms
        # Begins calls in the order in which they came, and sends responses: the reader of the links must not block.
        self._courier = Courier("gang-calls:courier")
        self._numbers = itertools.count(1)
        self._answers: dict[int, Future[bytes]] = {}
        # Done when the caller of a call that another rank has relayed has gone: by generation, that rank, its number.
        self._callers: dict[tuple[int, int, int], Future[None]] = {}

    def ask(self, route: Route, body: bytes, timeout: float) -> tuple[Future[bytes], Callable[[], None]]:
        """Relays a gang call to the group's leader. Returns the future response, and a function to withdraw the call.

        The future ends at the latest some seconds after `timeout`. Raises BridgeError when nothing was sent.
        """
        generation = route.generation
        number, answer = next(self._numbers), Future[bytes]()
        relay = Relay(generation.rank, route.leader, number, RelayKind.CALL, body)
        generation.await_end(answer, lambda error: _fail(answer, _indefinite(error)))
        self._answers[number] = answer
        answer.add_done_callback(lambda _: self._forget(generation, number, answer))
        error = late(f"rank {route.leader} has not reported the call's outcome")
        self._alarms.set(answer, time.monotonic() + timeout + 2 * VERDICT_GRACE, lambda: _fail(answer, error))
        if answer.done():
            self._alarms.cancel(answer)
        try:
            generation.links.group(WORLD).relay(relay)
        except OSError as error:
            over = generation.error or BridgeError.of(ErrorCode.PEER_LOST, str(error))
            _fail(answer, _indefinite(over))
        return answer, lambda: self._withdraw(generation, relay, answer)

    def receive(self, generation: Generation, relay: Relay) -> None:
        """Acts on a relay for this rank. The reader of the links calls it."""
        key = generation.number, relay.source, relay.number
        if relay.kind is RelayKind.CALL:
            caller = self._callers[key] = Future()
            self._courier.add(lambda: self._begin_here(generation, relay, caller))
        elif relay.kind is RelayKind.ANSWER:
            answer = self._answers.get(relay.number)
            if answer is not None:
                with suppress(InvalidStateError):
                    answer.set_result(relay.body)
        else:
            known = self._callers.get(key)
            if known is not None:
                with suppress(InvalidStateError):
                    known.set_result(None)

    def _forget(self, generation: Generation, number: int, answer: Future[bytes]) -> None:
        del self._answers[number]
        self._alarms.cancel(answer)
        generation.forget_end(answer)

    @staticmethod
    def _withdraw(generation: Generation, relay: Relay, answer: Future[bytes]) -> None:
        if not answer.done():
            with suppress(OSError):
                generation.links.group(WORLD).relay(relay._replace(kind=RelayKind.WITHDRAW, body=b""))

    def _begin_here(self, generation: Generation, relay: Relay, caller: Future[None]) -> None:
        asked = self._begin(relay.body)
        caller.add_done_callback(lambda _: asked.withdraw())

        def answer() -> None:
            self._courier.add(lambda: self._answer(generation, relay, asked))

        asked.then(answer)

    def _answer(self, generation: Generation, relay: Relay, asked: BegunCall) -> None:
        del self._callers[generation.number, relay.source, relay.number]
        answer = Relay(relay.target, relay.source, relay.number, RelayKind.ANSWER, asked.packed())
        # A rank that is gone needs no response.
        with suppress(OSError):
            generation.links.group(WORLD).relay(answer)


def _indefinite(error: BridgeError) -> BridgeError:
    return BridgeError(replace(error.failure, indefinite=True))


def _fail(answer: Future[bytes], error: BridgeError) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)
