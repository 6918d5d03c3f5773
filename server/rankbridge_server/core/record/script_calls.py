"""What the user's own code calls of torch.distributed, in the record of its rank."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..caller import Caller
from ..errors import BridgeError, Phase, Place
from .record import Record
from .recorded import Recorded


class CoordinatorGroup(NamedTuple):
    """The group of an object that looks like vLLM's GroupCoordinator. `ranks`: in the job.

    `since`: when its first call began, by the monotonic clock. What was called before is of another of its name.
    """

    ranks: Sequence[int]
    since: float


class ScriptCall:
    """A call of the user's own code, as `Entry` has it. Made by `ScriptCalls`."""

    __slots__ = ("began", "contract", "entered", "error", "look", "number", "place", "site", "slot")

    caller = Caller.SCRIPT
    phase = Phase.DATA
    announced = 0.0
    sequence = -1
    session_id = ""
    function = ""

    def __init__(self, place: Place, number: int, contract: str, site: str, look: Callable[[], None]) -> None:
        """`number`: as of `RecordedOperation` of the proto. `look`: ends it, if it is done."""
        self.place = place
        self.number = number
        self.contract = contract
        self.site = site
        self.began = self.entered = time.monotonic()
        self.error: BridgeError | None = None
        self.slot = 0
        self.look: Callable[[], None] | None = look


class ScriptCalls:
    """Writes the calls of the user's own code into its rank's record. Thread-safe.

    `where`: gives the rank's number and that of its generation; 0: there is none yet.
    """

    def __init__(self, record: Record, where: Callable[[], tuple[int, int]]) -> None:
        self.coordinators: dict[str, CoordinatorGroup] = {}
        """By name."""
        self._record = record
        self._where = where
        self._pending: dict[ScriptCall, None] = {}
        self._forgotten: deque[ScriptCall] = deque()

    def begin(
        self,
        operation: str,
        group: str,
        operation_id: str,
        number: int,
        contract: str,
        site: str,
        look: Callable[[], None],
    ) -> ScriptCall:
        """Writes a call that begins now. Arguments are as of `RecordedOperation` of the proto.

        `look`: called now and then until it is over: ends it, if it is done although nobody has waited for it.
        """
        if self._forgotten:
            self._end_forgotten()
        rank, generation = self._where()
        place = Place(rank, group, operation, operation_id, generation)
        call = ScriptCall(place, number, contract, site, look)
        self._pending[call] = None
        self._record.note(call)
        return call

    def end(self, call: ScriptCall, error: BridgeError | None) -> None:
        """Keeps a call that is over. `error`: how it has failed; None: it went well."""
        # What is over for its thread may be forgotten on another.
        if self._pending.pop(call, call) is None:
            # It refers to the call's tensors, and back.
            call.look = None
            call.error = error
            self._record.add(call)

    def forget(self, call: ScriptCall) -> None:
        """Ends a call soon that nobody can wait for any more. Takes no lock: a finalizer may call it at any moment."""
        call.look = None
        self._forgotten.append(call)

    def settle(self) -> None:
        """Ends calls that are done and that nobody has waited for."""
        self._end_forgotten()
        for call in list(self._pending):
            if (look := call.look) is not None:
                look()

    def under_way(self) -> list[Recorded]:
        """The calls that are not over, the oldest first."""
        if self._pending:
            self.settle()
        return [Recorded.of(it, 0.0) for it in list(self._pending)]

    def _end_forgotten(self) -> None:
        while self._forgotten:
            try:
                call = self._forgotten.popleft()
            except IndexError:
                return
            self.end(call, None)
