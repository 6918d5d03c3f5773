"""A stream of a gang's operations: the next is on its way while one runs."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from types import TracebackType
from typing import Any, Self

import grpc

from rankbridge import _operations as ops
from rankbridge._execution import Answer, Execution, ExecutionOver
from rankbridge._front import GangFront
from rankbridge._gang_calls import Joined, joined
from rankbridge._gang_core import all_values
from rankbridge._programs import Finish, finishing, member_calls, members_for
from rankbridge._status import Group
from rankbridge._sync_channels import SyncChannels
from rankbridge.errors import GangError, InvalidArgumentError, Outcome, RankBridgeError

__all__ = ["GangStream", "GangStreams", "Streamed"]

_MOST_UNDER_WAY = 256


class Streamed:
    """An operation that was begun with ``GangStream.submit``.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id, the same on every member.
        ranks: Ranks of the members, in group order.
    """

    def __init__(
        self, channels: SyncChannels, gang_call: Joined[Any], sent: tuple[Execution, Answer], finish: Finish
    ) -> None:
        """Made by ``GangStream``. `finish` makes the result of what every member gave."""
        self.operation = gang_call.call.operation
        self.operation_id = gang_call.call.operation_id
        self.ranks = tuple(call.rank for call in gang_call.each)
        self._channels = channels
        self._gang_call = gang_call
        self._stream, self._answer = sent
        self._finish = finish
        self._outcomes: list[Outcome[Any]] | None = None

    def __repr__(self) -> str:
        """Gives operation, id and ranks."""
        return f"Streamed({self.operation}, {self.operation_id!r}, ranks {list(self.ranks)})"

    def done(self) -> bool:
        """Says whether it is answered: whether `result` would wait."""
        return self._answer.done()

    def result(self) -> Any:
        """Waits until it is answered, at most until its deadline. May be called again.

        Returns:
            What the direct call gives.

        Raises:
            GangError: It failed, as the direct call would.
        """
        return self._finish(all_values(self.outcomes()))

    def outcomes(self) -> list[Outcome[Any]]:
        """Waits likewise, and gives every member's outcome, in group order."""
        if self._outcomes is None:
            self._outcomes = self._channels.answered(self._gang_call, self._stream, self._answer)
        return self._outcomes

    def _await(self) -> None:
        with contextlib.suppress(TimeoutError, grpc.RpcError, ExecutionOver):
            self._answer.wait(self._gang_call.call.deadline)

    def _is_settled(self) -> bool:
        """Says whether its end needs nobody's attention: somebody was told, or it is there and all went well."""
        if self._outcomes is not None:
            return True
        if not self._answer.done():
            return False
        try:
            outcomes = self._gang_call.call.result(self._answer.wait(0))
        except (RankBridgeError, grpc.RpcError, ExecutionOver):
            return False
        return all(outcome is None or outcome.error is None for outcome in outcomes)

    def cancel(self) -> None:
        """Withdraws it wherever it was not admitted yet. It is answered all the same."""
        self._stream.withdraw(self.operation_id)


class GangStream:
    """Operations of one group that are sent one after another, and answered in that order, each as soon as it is done.

    To be used as a context manager. At its end it waits for all that was begun, and raises the first failure that
    nobody has been told by `Streamed.result` or `Streamed.outcomes`. If its block fails, what was not admitted is
    withdrawn. Thread-safe.

    Attributes:
        group: The group, or its name.
    """

    def __init__(self, gang: GangFront, group: str | Group) -> None:
        """Made by ``Gang.stream``."""
        self.group = group
        self._gang = gang
        self._execution: Execution | None = None
        self._lock = threading.Lock()
        self._begun: deque[Streamed] = deque()

    def submit(self, operation: str, given: Any = None, **options: Any) -> Streamed:
        """Sends a collective, and returns at once; while very many are not answered, as soon as one more is.

        Args:
            operation: Name of the gang's method: "all_reduce", "broadcast_object", "ping".
            given: What the method takes first: refs, a value, values; None for one that takes nothing.
            **options: What else the method takes, but `group` and `calls`.

        Returns:
            The operation: its `result` waits.

        Raises:
            InvalidArgumentError: There is no such collective, or it is too large for a gang call.
            CallCancelledError: The gang is closed.
        """
        if options.keys() & {"group", "calls"}:
            raise InvalidArgumentError(
                "a stream is of one group, and of gang calls", expected="no group, no calls", got=str(options)
            )
        gang = self._gang
        options |= {"group": self.group, "calls": "gang"}
        members = gang._carried_out(members_for(gang, operation, given, options))
        build = ops.ping if operation == "ping" else ops.find_operation(operation)
        gang_call = joined(member_calls(gang, operation, build, given, members, options))
        if gang_call is None:
            raise InvalidArgumentError(
                "it does not go as a gang call", operation=operation, expected="one that is small enough"
            )
        finish = finishing(operation, given)
        with self._lock:
            sent = gang._channels.send_by(self._execution, gang_call.call)
            self._execution = sent[0]
            streamed = Streamed(gang._channels, gang_call, sent, finish)
            self._begun.append(streamed)
            # What was told, or is there and went well, needs nobody at the end.
            while self._begun and self._begun[0]._is_settled():
                self._begun.popleft()
            oldest = self._begun[-_MOST_UNDER_WAY] if len(self._begun) > _MOST_UNDER_WAY else None
        if oldest is not None:
            oldest._await()
        return streamed

    def close(self) -> None:
        """Waits for all that was begun; raises as leaving the block does.

        Raises:
            GangError: The first failure that nobody was told.
        """
        begun, self._begun = self._begun, deque()
        if self._execution is not None:
            self._execution.close()
        failure: RankBridgeError | None = None
        for streamed in begun:
            try:
                if streamed._outcomes is None:
                    streamed.result()
            except GangError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        """Gives the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; if the block failed, withdraws first what was begun, and raises that failure alone."""
        if kind is None:
            self.close()
            return
        for streamed in self._begun:
            if not streamed.done():
                streamed.cancel()
        try:
            self.close()
        except GangError:
            return


class GangStreams(GangFront):
    """How a ``Gang`` is driven by streams."""

    def stream(self, group: str | Group = "world") -> GangStream:
        """Opens a stream of operations of one group: gang calls, of which the next is sent while one runs.

        For example::

            with gang.stream() as stream:
                for batch in batches:
                    stream.submit("all_reduce", batch, in_place=True)
                total = stream.submit("all_gather", parts)
            rows = total.result()

        Args:
            group: The group, or its name.
        """
        return GangStream(self, group)
