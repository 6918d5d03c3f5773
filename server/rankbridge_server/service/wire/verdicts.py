"""Conversions between the doctor's evidence and verdicts and protobuf's."""

from __future__ import annotations

from google.protobuf.message import Message

from rankbridge.v1 import debug_service_pb2 as pb, error_pb2, event_pb2, rank_service_pb2

from ...core.processes import Look, Memory
from ...doctor.evidence import Frame, Thread
from ...doctor.gang_evidence import group_of
from ...doctor.looks import between
from ...doctor.page import page
from ...doctor.testimony import Admission, Operation, Outside, Testimony
from ...doctor.verdict import Culprit, Side, Verdict, Wait
from ...links.wire import activity_of
from .torch_states import torch_state


def pack_process(pid: int, thread: int, look: Look, memory: Memory) -> pb.Process:
    """What the kernel says of a process."""
    packed = pb.Process(
        pid=pid,
        native_id=thread or pid,
        state=look.state,
        wchan=look.wchan,
        syscall=look.syscall,
        cpu_us=round(look.cpu_s * 1e6),
        children=look.children,
    )
    for name, value in (
        ("run_delay_us", look.run_delay_s and look.run_delay_s * 1e6),
        ("switches", look.switches),
        ("blocked_us", look.blocked_s and look.blocked_s * 1e6),
        ("resident_bytes", memory.resident),
        ("resident_peak_bytes", memory.resident_peak),
        ("throttled_us", memory.throttled_s and memory.throttled_s * 1e6),
        ("oom_kills", memory.oom_kills),
    ):
        if value is not None:
            setattr(packed, name, max(0, round(value)))
    return packed


def testimony(evidence: pb.GetEvidenceResponse) -> Testimony:
    """What a rank says of itself."""
    rank = evidence.rank
    over = rank.generation_state == rank_service_pb2.GENERATION_STATE_OVER
    error = rank.generation_error
    has_threads = evidence.user_thread or evidence.from_outside
    threads = tuple(map(_thread, evidence.stacks.threads)) if has_threads else ()
    return Testimony(
        rank=rank.rank,
        pid=rank.pid,
        host=rank.host,
        process=between(_look(evidence.before), _look(evidence.process)),
        groups=tuple(group_of(it.name, it.ranks) for it in rank.groups if it.HasField("rank_in_group")),
        # Of the user's own code, torch's state says it.
        operations=tuple(_operation(it) for it in evidence.record.operations if not it.by_script),
        admissions=tuple(map(_admission, evidence.pending.admissions)),
        activity=activity_of(evidence.activity) if evidence.HasField("activity") else None,
        threads=threads,
        still=evidence.still if threads else None,
        lost=tuple(
            (it.rank, it.detail) for it in error.ranks if over and it.state == error_pb2.RANK_STATE_LOST
        ),
        over=error.message if over else "",
        torch=torch_state(evidence.torch) if evidence.HasField("torch") else None,
        outside=Outside(alive_at=evidence.alive_us / 1e6, in_order=evidence.ended_in_order)
        if evidence.from_outside
        else None,
    )


def pack_verdict(verdict: Verdict) -> pb.Verdict:
    """A verdict, with its page."""
    return pb.Verdict(
        kind=pb.VerdictKind.Value(f"VERDICT_KIND_{verdict.kind.name}"),
        summary=verdict.summary,
        confidence=verdict.confidence,
        culprits=map(_pack_culprit, verdict.culprits),
        call=verdict.call,
        sides=map(_pack_side, verdict.sides),
        waits=map(_pack_wait, verdict.waits),
        cycle=verdict.cycle,
        advice=verdict.advice,
        evidence=verdict.evidence,
        notes=verdict.notes,
        world_size=verdict.world_size,
        page=page(verdict),
    )


def _look(process: pb.Process) -> Look:
    return Look(
        state=process.state,
        wchan=process.wchan,
        syscall=process.syscall,
        cpu_s=process.cpu_us / 1e6,
        run_delay_s=_seconds(process, "run_delay_us"),
        switches=process.switches if process.HasField("switches") else None,
        blocked_s=_seconds(process, "blocked_us"),
        children=tuple(process.children),
    )


def _seconds(message: Message, microseconds: str) -> float | None:
    value: int = getattr(message, microseconds)
    return value / 1e6 if message.HasField(microseconds) else None


def _thread(thread: pb.ThreadStack) -> Thread:
    frames = tuple(Frame(name=it.function, file=it.file, line=it.line) for it in thread.frames)
    return Thread(
        name=thread.name,
        os_id=thread.native_id,
        state=thread.state or "?",
        owns_gil=thread.holds_lock if thread.HasField("holds_lock") else None,
        frames=frames,
    )


def pack_thread(it: Thread) -> pb.ThreadStack:
    """A thread as it was read from outside."""
    return pb.ThreadStack(
        name=it.name,
        native_id=it.os_id or 0,
        frames=[pb.StackFrame(function=one.name, file=one.file, line=one.line) for one in it.frames],
        state="" if it.state == "?" else it.state,
        holds_lock=it.owns_gil,
    )


def _operation(it: pb.RecordedOperation) -> Operation:
    called_at = it.called_us / 1e6
    after = {name: _seconds(it, name) for name in ("announced_us", "entered_us", "done_us")}
    at = {name: None if seconds is None else called_at + seconds for name, seconds in after.items()}
    code = error_pb2.ErrorCode.Name(it.code).removeprefix("ERROR_CODE_") if it.code else ""
    return Operation(
        kind=it.operation,
        group=it.group,
        operation_id=it.operation_id,
        contract=it.contract,
        site=it.site,
        function=it.function,
        called_at=called_at,
        announced_at=at["announced_us"],
        entered_at=at["entered_us"],
        done_at=at["done_us"],
        code=code,
        message=it.message,
        generation=it.generation,
        sequence=it.sequence if it.HasField("sequence") else None,
    )


def _admission(it: event_pb2.StragglerEvent) -> Admission:
    return Admission(
        group=it.group,
        kind=it.operation,
        operation_id=it.operation_id,
        arrived=tuple((one.rank, one.after_us / 1e6) for one in it.arrived),
        missing=tuple(one.rank for one in it.missing),
        waited_s=it.waited_us / 1e6,
    )


def _pack_culprit(it: Culprit) -> pb.Culprit:
    return pb.Culprit(
        rank=it.rank,
        confidence=it.confidence,
        condition=pb.Condition.Value(f"CONDITION_{it.condition.name}"),
        why=it.why,
        pid=it.pid or 0,
        host=it.host,
        stack=[pb.StackFrame(function=one.name, file=one.file, line=one.line) for one in it.stack],
    )


def _pack_side(it: Side) -> pb.VerdictSide:
    return pb.VerdictSide(ranks=it.ranks, what=it.what, sites=map(str, it.sites))


def _pack_wait(it: Wait) -> pb.VerdictWait:
    return pb.VerdictWait(
        rank=it.rank,
        call=it.call,
        waits_for=it.waits_for,
        # Evidence that was made up may have a time that rounds up to more than the field holds.
        waited_us=None if it.seconds is None else min(round(it.seconds * 1e6), 2**64 - 1),
        site=str(it.site) if it.site is not None else "",
    )
