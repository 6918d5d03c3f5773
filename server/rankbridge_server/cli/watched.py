"""Records of `rankbridge watch` in the words of a gang's record."""

from __future__ import annotations

from pathlib import Path

from rankbridge import RecordedOperation

from ..doctor.evidence import Call
from ..job.outside import rings


def records(folder: Path) -> dict[int, list[RecordedOperation]]:
    """By rank, what it has recorded in the folder of `rankbridge watch`. Raises BadRing."""
    return {it.rank: [recorded(call, it) for call in it.calls] for it in rings.in_directory(folder)}


def recorded(call: Call, record: rings.Record) -> RecordedOperation:
    """A call that a rank has recorded."""
    called = call.called_at or 0.0
    ended = None if _is_pending(call, record) else call.waited_at or call.returned_at
    return RecordedOperation(
        operation=call.kind,
        group=group_name(call.group, record),
        operation_id=_id(call, record.rank),
        session_id="",
        generation=0,
        contract=_contract(call),
        site="" if call.site is None else str(call.site),
        function="",
        called=called,
        announced=None,
        entered=0.0,
        done=None if ended is None else ended - called,
        phase="data",
        code="",
        message="",
        indefinite=False,
        caller="script",
        number=0 if call.is_p2p else call.number,
    )


def _is_pending(call: Call, record: rings.Record) -> bool:
    """Whether the rank is in the call, or waits for it: of a call that it does not wait for, nobody notes the end."""
    if call.returned_at is None:
        return True
    newest = record.calls[-1]
    return call is newest and call.waited_at is None and record.waiting_since is not None


def group_name(name: str, record: rings.Record) -> str:
    """A group's name for people."""
    group = next((it for it in record.groups if it.name == name), None)
    if group is None or not group.description:
        return name
    return "world" if group.description == "default_pg" else group.description


def _id(call: Call, rank: int) -> str:
    """What is the same on all ranks that have called it."""
    if not call.is_p2p:
        return f"{call.group} {call.number}"
    return ""


def _contract(call: Call) -> str:
    parts = [call.kind]
    parts += [f"dtype={it}" for it in call.dtypes]
    parts += [f"shape={list(it)}" for it in call.shapes]
    parts += [
        f"{name}={value}"
        for name, value in (("op", call.op), ("root", call.root), ("peer", call.peer), ("tag", call.tag))
        if value is not None
    ]
    return " ".join(parts)
