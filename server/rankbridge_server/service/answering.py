"""Responses of RPCs: an exception becomes the `error` of the response."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from google.protobuf.message import Message

from rankbridge.v1 import error_pb2

from ..core.errors import BridgeError, ErrorCode, Place
from ..core.logger import LOGGER
from ..core.rank import Rank
from ..core.task import failure_of
from .wire import wire

Response = TypeVar("Response", bound=Message)
Request = TypeVar("Request")


class OfRank:
    """A servicer of one rank."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank


Servicer = TypeVar("Servicer", bound=OfRank)


def answers(
    response: type[Response], operation: str
) -> Callable[[Callable[[Servicer, Request], object]], Callable[[Servicer, Request, Any], Response]]:
    """Makes an RPC of a method, which returns the value of the `response` or raises its error.

    `operation`: the name of the RPC in errors.
    """
    value = value_field(response)

    def decorate(
        method: Callable[[Servicer, Request], object],
    ) -> Callable[[Servicer, Request, Any], Response]:
        @wraps(method)
        def call(self: Servicer, request: Request, context: Any) -> Response:
            return answered(
                self._rank,
                operation,
                lambda: response(**{value: method(self, request)}),
                lambda error: response(error=error),
            )

        return call

    return decorate


def value_field(response: type[Message]) -> str:
    """The field of a response that has a value or an error."""
    (name,) = (it.name for it in response.DESCRIPTOR.oneofs_by_name["outcome"].fields if it.name != "error")
    return name


def answered(
    rank: Rank,
    operation: str,
    answer: Callable[[], Response],
    refused: Callable[[error_pb2.Error], Response],
) -> Response:
    """Returns the response of `answer`; if that raises, the response that `refused` makes of the error."""
    try:
        return answer()
    except Exception as error:
        return refused(packed_error(rank, operation, error))


def packed_error(rank: Rank, operation: str, error: Exception) -> error_pb2.Error:
    """The error of a response. `operation`: where it happened, for an error without a place."""
    place = Place(rank=rank.describe().rank, operation=operation)
    known = error if isinstance(error, BridgeError) else BridgeError(failure_of(error))
    if known.failure.code is ErrorCode.RESOURCE_EXHAUSTED:
        LOGGER.warning("%s: %s", operation, known, extra={"rank": place.rank, "event": "limit"})
    return wire.pack_error(known.at(place).failure)
