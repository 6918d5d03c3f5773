"""Requests and answers of streams, as tests write them, and who waits for an answer."""

from __future__ import annotations

import asyncio
import threading

from rankbridge._transport.streams import RankStream
from rankbridge.v1 import gang_service_pb2 as pb


class Answer:
    """Waits for the answer to one request, in a thread or in an event loop."""

    def __init__(self) -> None:
        self._stream: RankStream | None = None
        self._number = 0
        self._ended = threading.Event()
        self._response = pb.ExecuteResponse()
        self._error: BaseException | None = None

    def _come(self, response: pb.ExecuteResponse) -> None:
        assert not self._ended.is_set(), "it was answered twice"
        self._response = response
        self._ended.set()

    def _fail(self, error: BaseException) -> None:
        assert not self._ended.is_set(), "it was answered twice"
        self._error = error
        self._ended.set()

    def done(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout: float) -> str:
        """What a test wrote into the answer; raises why there is none."""
        if not self._ended.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._response.outcomes.operation_id

    async def awaited(self, timeout: float) -> str:
        """As `wait`, while the loop goes on."""
        return await asyncio.to_thread(self.wait, timeout)


def request(operation_id: str, size: int = 0) -> pb.ExecuteRequest:
    """A gang call of at least so many bytes."""
    it = pb.ExecuteRequest()
    it.call.call.operation_id = operation_id
    it.call.call.group = "x" * size
    return it


def response(number: int, text: str) -> bytes:
    """An answer in which a text can be read."""
    outcomes = pb.MemberOutcomes(operation_id=text)
    return pb.ExecuteResponse(outcomes=outcomes, number=number).SerializeToString()


def sent(stream: RankStream, operation_id: str, size: int = 0) -> Answer:
    """Sends a gang call, which the stream takes."""
    answer = Answer()
    assert stream.send(request(operation_id, size), answer)
    return answer
