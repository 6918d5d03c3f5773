"""Frames on a link: a 4-byte big-endian length and one `rankbridge.link.v1.Frame`."""

from __future__ import annotations

import math
from dataclasses import asdict

from google.protobuf.message import DecodeError

from rankbridge.link.v1 import link_pb2 as pb
from rankbridge.v1 import error_pb2

from ..core.activity import Activity, Doing
from ..core.admission.admission import GO, Arrival, Member, Reply, Ruling, Verdict
from ..core.admission.matching import Match, Post, Side
from ..core.errors import ErrorCode, Raised
from ..core.gang_calls.messages import Command, Relay, RelayKind, Release, Report
from ..core.links import Ended

MAX_FRAME = 16 * 1024 * 1024
MAX_HELLO = 4096
"""Bytes of a first frame: a stranger is not to make a rank keep more."""
_LENGTH = 4
# What a whole number of milliseconds may come to in floating point, above itself.
_ROUNDING = 1e-3


class Frames:
    """Cuts a stream of bytes into frames. `longest`: bytes that one may have."""

    def __init__(self) -> None:
        self.longest = MAX_FRAME
        self._incomplete = bytearray()
        self._needed = _LENGTH

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that `data` completes, without their lengths. Raises ValueError for one that is too long."""
        if self._incomplete:
            self._incomplete += data
            if len(self._incomplete) < self._needed:
                return []
            data = bytes(self._incomplete)
            self._incomplete.clear()
        frames = []
        start = 0
        while len(data) - start >= _LENGTH:
            body = start + _LENGTH
            end = body + int.from_bytes(data[start:body], "big")
            if end - start > self.longest:
                raise ValueError(f"a frame of {end - body} bytes is not one of ours")
            if len(data) < end:
                self._needed = end - start
                break
            frames.append(data[body:end])
            start = end
        else:
            self._needed = _LENGTH
        if start < len(data):
            self._incomplete += data[start:]
        return frames


def pack(frame: pb.Frame) -> bytes:
    """The bytes of a frame on the link."""
    return frame_of(frame.SerializeToString())


def frame_of(body: bytes) -> bytes:
    """The bytes of a frame on the link, from its serialized body."""
    return len(body).to_bytes(_LENGTH, "big") + body


def parse(body: bytes) -> pb.Frame:
    """Parses the body of a frame. Raises ValueError for anything else."""
    try:
        return pb.Frame.FromString(body)
    except DecodeError as error:
        raise ValueError(f"not a frame: {error}") from error


def hello(generation: int, rank: int, secret: bytes, group: str) -> bytes:
    """The first frame of a rank that connects."""
    return pack(pb.Frame(hello=pb.Hello(generation=generation, rank=rank, secret=secret, group=group)))


def welcome(rank: int) -> bytes:
    """The leader's answer to a hello."""
    return pack(pb.Frame(welcome=pb.Welcome(rank=rank)))


def arrival_body(group: str, arrival: Arrival) -> bytes:
    """The body of an arrival's frame."""
    # A submessage that is filled in place is not copied.
    frame = pb.Frame()
    message = frame.arrival
    message.group = group
    message.sequence = arrival.sequence
    message.operation_id = arrival.operation_id
    message.contract = arrival.contract
    # Rounded up, so that arrivals of one operation, whose remaining timeouts differ slightly, are mostly equal.
    message.timeout_ms = max(1, math.ceil(arrival.timeout * 1000 - _ROUNDING))
    message.payload = arrival.payload
    message.site = arrival.site
    return frame.SerializeToString()


def pack_arrival(group: str, arrival: Arrival) -> bytes:
    """A member's arrival."""
    return frame_of(arrival_body(group, arrival))


def pack_withdrawal(group: str, arrival: Arrival) -> bytes:
    """The withdrawal of an arrival."""
    return pack(
        pb.Frame(
            withdrawal=pb.Withdrawal(
                group=group, sequence=arrival.sequence, operation_id=arrival.operation_id
            )
        )
    )


BEAT = pack(pb.Frame(beat=pb.Beat()))
"""A heartbeat."""

_RULINGS = {ruling: pb.Ruling.Value(f"RULING_{ruling.name}") for ruling in Ruling}

GOODBYE = pack(pb.Frame(goodbye=pb.Goodbye()))
"""The last frame of a link that is closed on purpose."""


def arrival_of(message: pb.Arrival) -> Arrival:
    """Unpacks an arrival."""
    return Arrival(
        message.sequence,
        message.operation_id,
        message.contract,
        message.timeout_ms / 1000,
        message.payload,
        message.site,
    )


def pack_reply(group: str, reply: Reply) -> bytes:
    """A verdict for one member."""
    verdict, arrival = reply.verdict, reply.arrival
    frame = pb.Frame()
    message = frame.verdict
    message.group = group
    message.sequence = arrival.sequence
    message.operation_id = arrival.operation_id
    message.ruling = _RULINGS[verdict.ruling]
    if verdict.payloads:
        message.payloads.extend(verdict.payloads)
    if verdict.refusal:
        message.refusal = verdict.refusal
    message.members.extend(map(_pack_member, verdict.members))
    return pack(frame)


def verdict_of(message: pb.Verdict) -> Verdict:
    """Unpacks a verdict. Raises ValueError for an unknown ruling."""
    if message.ruling == pb.RULING_GO and not (message.payloads or message.members):
        return GO
    return Verdict(
        _ruling(message.ruling),
        tuple(map(_member_of, message.members)),
        tuple(message.payloads),
        message.refusal,
    )


def pack_question(number: int) -> bytes:
    """Asks a member what it does."""
    return pack(pb.Frame(question=pb.Question(number=number)))


def pack_answer(number: int, activity: Activity) -> bytes:
    """A member's answer."""
    return pack(pb.Frame(answer=pb.Answer(number=number, activity=pack_activity(activity))))


def pack_activity(activity: Activity) -> error_pb2.Activity:
    """Packs what a rank does."""
    return error_pb2.Activity(
        doing=error_pb2.Doing.Value(f"DOING_{activity.doing.name}"),
        group=activity.group,
        operation=activity.operation,
        operation_id=activity.operation_id,
        site=activity.site,
        for_ms=round(activity.seconds * 1000),
        where=activity.where,
    )


def activity_of(message: error_pb2.Activity) -> Activity:
    """Unpacks what a rank does. Raises ValueError for something unknown."""
    name = error_pb2.Doing.Name(message.doing).removeprefix("DOING_")
    if name not in Doing.__members__:
        raise ValueError(f"nothing that a rank does: {message.doing}")
    return Activity(
        doing=Doing[name],
        seconds=message.for_ms / 1000,
        group=message.group,
        operation=message.operation,
        operation_id=message.operation_id,
        site=message.site,
        where=message.where,
    )


def _pack_member(member: Member) -> pb.Member:
    return pb.Member(
        rank_in_group=member.rank_in_group,
        arrived=member.arrival is not None,
        contract=member.arrival or "",
        site=member.site,
        activity=None if member.activity is None else pack_activity(member.activity),
    )


def _member_of(message: pb.Member) -> Member:
    return Member(
        message.rank_in_group,
        message.contract if message.arrived else None,
        message.site,
        activity_of(message.activity) if message.HasField("activity") else None,
    )


def _ruling(value: pb.Ruling.ValueType) -> Ruling:
    name = pb.Ruling.Name(value).removeprefix("RULING_")
    if name not in Ruling.__members__:
        raise ValueError(f"not a ruling: {value}")
    return Ruling[name]


_SIDES = {side: pb.Side.Value(f"SIDE_{side.name}") for side in Side}


def pack_post(post: Post) -> bytes:
    """A member's post."""
    timeout_ms = max(1, math.ceil(post.timeout * 1000 - _ROUNDING))
    message = pb.Post(
        number=post.number,
        side=_SIDES[post.side],
        peer=post.peer,
        tag=post.tag,
        kind=post.kind,
        spec=post.spec,
        timeout_ms=timeout_ms,
        payload=post.payload,
        channel=post.channel,
        site=post.site,
    )
    return pack(pb.Frame(post=message))


def post_of(message: pb.Post) -> Post:
    """Unpacks a post. Raises ValueError for an unknown side."""
    name = pb.Side.Name(message.side).removeprefix("SIDE_")
    if name not in Side.__members__:
        raise ValueError(f"not a side: {message.side}")
    return Post(
        message.number,
        Side[name],
        message.peer if message.HasField("peer") else None,
        message.tag,
        message.kind,
        message.spec,
        message.timeout_ms / 1000,
        message.payload,
        message.channel,
        message.site,
    )


def pack_match(number: int, match: Match) -> bytes:
    """The answer to a post."""
    message = pb.Match(
        number=number,
        ruling=_RULINGS[match.ruling],
        transfer=match.transfer,
        peer=match.peer,
        theirs=match.theirs,
        payload=match.payload,
        site=match.site,
        missing=map(_pack_member, match.missing),
    )
    return pack(pb.Frame(match=message))


def match_of(message: pb.Match) -> Match:
    """Unpacks a match. Raises ValueError for an unknown ruling."""
    return Match(
        _ruling(message.ruling),
        message.transfer,
        message.peer,
        message.theirs,
        message.payload,
        message.site,
        tuple(map(_member_of, message.missing)),
    )


def pack_recall(number: int) -> bytes:
    """The withdrawal of a post."""
    return pack(pb.Frame(recall=pb.Recall(number=number)))


def pack_command(number: int, part: bytes) -> bytes:
    """A member's part of a gang call."""
    frame = pb.Frame()
    frame.command.number = number
    frame.command.part = part
    return pack(frame)


def command_of(group: str, message: pb.Command) -> Command:
    """Unpacks a member's part of a gang call."""
    return Command(group, message.number, message.part)


def pack_report(report: Report) -> bytes:
    """A member's report."""
    frame = pb.Frame()
    message = frame.report
    message.number = report.number
    message.operation_id = report.operation_id
    message.result = report.result
    if report.refusal:
        message.refusal = report.refusal
        message.reason = report.reason
    return pack(frame)


def report_of(group: str, rank_in_group: int, message: pb.Report) -> Report:
    """Unpacks a member's report."""
    return Report(
        group,
        rank_in_group,
        message.number,
        message.operation_id,
        message.result,
        message.refusal,
        message.reason,
    )


_RELAY_KINDS = {kind: pb.Errand.Value(f"ERRAND_{kind.name}") for kind in RelayKind}


def pack_relay(relay: Relay) -> bytes:
    """A relayed gang call, its response, or its withdrawal."""
    return pack(
        pb.Frame(
            relay=pb.Relay(
                source=relay.source,
                target=relay.target,
                number=relay.number,
                errand=_RELAY_KINDS[relay.kind],
                body=relay.body,
            )
        )
    )


def relay_of(message: pb.Relay) -> Relay:
    """Unpacks a relay. Raises ValueError for an unknown kind."""
    name = pb.Errand.Name(message.errand).removeprefix("ERRAND_")
    if name not in RelayKind.__members__:
        raise ValueError(f"not a kind of relay: {message.errand}")
    return Relay(message.source, message.target, message.number, RelayKind[name], message.body)


def pack_abort(generation: int, ended: Ended) -> bytes:
    """The end of a generation."""
    abort = pb.Abort(
        generation=generation,
        rank=ended.rank,
        lost=ended.lost,
        reason=ended.reason,
        code=ended.code.name if ended.code else "",
        raised=_pack_raised(ended.raised),
    )
    return pack(pb.Frame(abort=abort))


def ended_of(message: pb.Abort) -> Ended:
    """Unpacks the end of a generation. Raises ValueError for an unknown code."""
    return Ended(message.rank, message.lost, message.reason, _code(message.code), _raised(message))


def pack_release(release: Release) -> bytes:
    """A call of a function that has failed, or is to end."""
    message = pb.Release(
        operation_id=release.operation_id,
        rank=release.rank,
        reason=release.reason,
        raised=_pack_raised(release.raised),
        begun=[pb.Begun(group=group, count=count) for group, count in release.begun.items()],
        code=release.code.name if release.code else "",
    )
    return pack(pb.Frame(release=message))


def release_of(group: str, message: pb.Release) -> Release:
    """Unpacks a release. Raises ValueError for an unknown code."""
    return Release(
        group,
        message.operation_id,
        message.rank if message.HasField("rank") else None,
        message.reason,
        _raised(message),
        {it.group: it.count for it in message.begun},
        _code(message.code),
    )


def _code(name: str) -> ErrorCode | None:
    if name and name not in ErrorCode.__members__:
        raise ValueError(f"not an error code: {name}")
    return ErrorCode[name] if name else None


def _pack_raised(raised: Raised | None) -> pb.Raised | None:
    if raised is None:
        return None
    return pb.Raised(**asdict(raised))


def _raised(message: pb.Abort | pb.Release) -> Raised | None:
    it = message.raised
    if not message.HasField("raised"):
        return None
    return Raised(rank=it.rank, type=it.type, text=it.text, traceback=it.traceback, where=it.where)
