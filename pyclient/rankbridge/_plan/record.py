"""What ranks have done, and where their threads are; and how it is read from the wire."""

from __future__ import annotations

from dataclasses import dataclass

from rankbridge._plan.positions import Position
from rankbridge._plan.wire import fields_of, short_name
from rankbridge.errors import InvalidArgumentError, UnsupportedOperationError
from rankbridge.v1 import debug_service_pb2, error_pb2

CONTROLLER, SCRIPT = "controller", "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperation:
    """An operation in a rank's record.

    Attributes:
        operation: Its kind: "all_reduce".
        group: Name of its group.
        operation_id: Its operation id; of a call of the user's own code, what is the same on all members. Empty: none.
        session_id: Session of its caller. Empty: the shared one.
        generation: Generation in which it was called.
        contract: What its members agree on: "all_reduce dtype=float32 shape=[4] op=sum". Empty: nothing, or it was not
            announced.
        site: The line of code that has made the call. Empty: not said.
        function: Name of the user's function that it calls. Empty: none.
        called: When the rank accepted it, in seconds since 1970 by the clock of the rank's host.
        announced: Seconds from there until the group's leader was told. None: it was not.
        entered: Until it entered the backend, or the function began. None: it did not.
        done: Until it was answered. None: it is not yet.
        phase: How far it has come: "check" (queued behind others of its group), "admission" (waiting for the other
            members), "data" (in the backend).
        code: How it failed: "peer_missing". Empty: it went well, or is not done.
        message: The error's text. Empty: none.
        indefinite: Whether other ranks may have done it although it failed here.
        caller: "controller": an operation; "script": the user's own code, by torch.distributed.
        number: Of a call of the user's own code: its number in its group, from 1, the same on all members. 0: none.
    """

    operation: str
    group: str
    operation_id: str
    session_id: str
    generation: int
    contract: str
    site: str
    function: str
    called: float
    announced: float | None
    entered: float | None
    done: float | None
    phase: str
    code: str
    message: str
    indefinite: bool
    caller: str = CONTROLLER
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGrowth:
    """How a rank's record has grown since the growth before.

    Attributes:
        rank: Rank in the gang.
        operations: Operations that have ended since, in the order in which they ended.
        pending: Operations that were not answered then, the oldest first.
        ended: How many operations have ended on the rank since it started, of all groups.
        lost: How many this watcher has lost since, of all groups: it was too slow. 0: none.
        position: How far the record was read, for `after` of another watch.
        time: When it was so, by the clock of the rank's host: seconds since 1970 in UTC.
        from_outside: Whether it was read from outside, because the rank does not run Python: it is stopped, or a thread
            holds Python's lock.
    """

    rank: int
    operations: tuple[RecordedOperation, ...]
    pending: tuple[RecordedOperation, ...]
    ended: int
    lost: int
    position: Position
    time: float
    from_outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """A call in a stack.

    Attributes:
        function: Name of the function, with its class.
        file: File of its code.
        line: The line at which it is.
    """

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStack:
    """The stack of a thread of a rank's process.

    Attributes:
        name: Name of the thread: "MainThread".
        native_id: The kernel's number of the thread.
        frames: Its calls, the innermost first.
        holds_lock: Whether it holds Python's lock. None: it is not known, as the rank itself has answered.
    """

    name: str
    native_id: int
    frames: tuple[StackFrame, ...]
    holds_lock: bool | None = None


def track_of_calls(group: str) -> str:
    """The name under which viewers show what the user's own code calls in a group, beside the group's operations."""
    return f"{group}: {SCRIPT}"


def by_script_of(caller: str, operation: str) -> bool | None:
    """Whose operations are asked for, as the wire has it; None: everybody's.

    Raises:
        InvalidArgumentError: Nobody is called so.
    """
    if caller not in ("", CONTROLLER, SCRIPT):
        raise InvalidArgumentError(
            "unknown caller", operation=operation, expected=f"{CONTROLLER} or {SCRIPT}", got=caller
        )
    return caller == SCRIPT if caller else None


def record_from_wire(record: debug_service_pb2.GetRecordResponse) -> list[RecordedOperation]:
    """Reads a rank's record."""
    return [_operation(it) for it in record.operations]


def growth_from_wire(rank: int, it: debug_service_pb2.RecordGrowth) -> RecordGrowth:
    """Reads how a rank's record has grown."""
    return RecordGrowth(
        rank=rank,
        operations=tuple(map(_operation, it.operations)),
        pending=tuple(map(_operation, it.pending)),
        ended=it.ended,
        lost=it.lost,
        position=Position(it.ended, it.record),
        time=it.at_us / 1e6,
        from_outside=it.from_outside,
    )


def stacks_from_wire(stacks: debug_service_pb2.GetStacksResponse) -> list[ThreadStack]:
    """Reads the stacks of a rank's threads.

    Raises:
        UnsupportedOperationError: They had to be read from outside, and could not be.
    """
    if stacks.trouble and not stacks.threads:
        raise UnsupportedOperationError(stacks.trouble, operation="stacks")
    return [
        ThreadStack(
            name=it.name,
            native_id=it.native_id,
            frames=tuple(map(frame_from_wire, it.frames)),
            holds_lock=it.holds_lock if it.HasField("holds_lock") else None,
        )
        for it in stacks.threads
    ]


def frame_from_wire(frame: debug_service_pb2.StackFrame) -> StackFrame:
    """Reads a call in a stack."""
    return StackFrame(**fields_of(StackFrame, frame))


_CODES: dict[int, str] = {
    number: short_name(error_pb2.ErrorCode.items(), number)
    for number in error_pb2.ErrorCode.values()
    if number
}
_PHASES: dict[int, str] = {
    number: short_name(error_pb2.Phase.items(), number) for number in error_pb2.Phase.values()
}


def _operation(it: debug_service_pb2.RecordedOperation) -> RecordedOperation:
    # Field by field: a watcher of a gang reads ten thousand of them in a second.
    return RecordedOperation(
        operation=it.operation,
        group=it.group,
        operation_id=it.operation_id,
        session_id=it.session_id,
        generation=it.generation,
        contract=it.contract,
        site=it.site,
        function=it.function,
        message=it.message,
        indefinite=it.indefinite,
        caller=SCRIPT if it.by_script else CONTROLLER,
        number=it.number,
        called=it.called_us / 1e6,
        announced=it.announced_us / 1e6 if it.HasField("announced_us") else None,
        entered=it.entered_us / 1e6 if it.HasField("entered_us") else None,
        done=it.done_us / 1e6 if it.HasField("done_us") else None,
        phase=_PHASES.get(it.phase, _PHASES[0]),
        code=_CODES.get(it.code, "unspecified") if it.code else "",
    )
