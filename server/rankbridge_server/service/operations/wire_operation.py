"""One operation as it comes over the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rankbridge.v1 import call_pb2

from ...core.operations.operation import Operation
from ..wire import values


class Request(Protocol):
    """What every request of an operation has."""

    @property
    def call(self) -> call_pb2.Call:
        """Group, identity, timeout."""


R = TypeVar("R", bound=Request)
Args = TypeVar("Args")


@dataclass(frozen=True, slots=True)
class WireOperation(Generic[R, Args]):
    """The core's declaration of an operation, and how to read its arguments from a request; may raise BridgeError.

    `pack` makes of its outcome the message that its response has.
    """

    core: Operation[Args]
    args: Callable[[R], Args]
    pack: Callable[[Any], Any] = values.pack_value
