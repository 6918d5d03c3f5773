"""Frames on a link: a 4-byte big-endian length and one `rankbridge.link.v1.Frame`."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission import Arrival, Member, Reply, Ruling, Verdict
from ..core.links import Ended

MAX_FRAME = 16 * 1024 * 1024
_LENGTH = 4


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[pb.Frame]:
        """The frames that `data` completes. Raises ValueError on what is not a frame."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._buffer[:_LENGTH], "big")
            if end > MAX_FRAME:
                raise ValueError(f"a frame of {end - _LENGTH} bytes is not one of ours")
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH:end])
            del self._buffer[:end]
            try:
                yield pb.Frame.FromString(body)
            except DecodeError as error:
                raise ValueError(f"not a frame: {error}") from error


def pack(frame: pb.Frame) -> bytes:
    """A frame as it goes on the link."""
    body = frame.SerializeToString()
    return len(body).to_bytes(_LENGTH, "big") + body


def hello(generation: int, rank: int, secret: bytes, group: str) -> bytes:
    """Who connects, and for which group."""
    return pack(pb.Frame(hello=pb.Hello(generation=generation, rank=rank, secret=secret, group=group)))


def welcome(rank: int) -> bytes:
    """Who accepted."""
    return pack(pb.Frame(welcome=pb.Welcome(rank=rank)))


def pack_arrival(group: str, arrival: Arrival) -> bytes:
    """A member has come."""
    return pack(
        pb.Frame(
            arrival=pb.Arrival(
                group=group,
                sequence=arrival.sequence,
                operation_id=arrival.operation_id,
                contract=arrival.contract,
                timeout_ms=max(1, round(arrival.timeout * 1000)),
                payload=arrival.payload,
            )
        )
    )


def pack_withdrawal(group: str, arrival: Arrival) -> bytes:
    """A member wants to leave again."""
    return pack(
        pb.Frame(
            withdrawal=pb.Withdrawal(
                group=group, sequence=arrival.sequence, operation_id=arrival.operation_id
            )
        )
    )


BEAT = pack(pb.Frame(beat=pb.Beat()))
"""A sign of life."""

GO = Verdict(Ruling.GO)

GOODBYE = pack(pb.Frame(goodbye=pb.Goodbye()))
"""This link is closed on purpose."""


def arrival_of(message: pb.Arrival) -> Arrival:
    """An arrival as the core has it."""
    return Arrival(
        message.sequence,
        message.operation_id,
        message.contract,
        message.timeout_ms / 1000,
        message.payload,
    )


def pack_reply(group: str, reply: Reply) -> bytes:
    """A verdict for one member."""
    verdict = reply.verdict
    return pack(
        pb.Frame(
            verdict=pb.Verdict(
                group=group,
                sequence=reply.arrival.sequence,
                operation_id=reply.arrival.operation_id,
                ruling=pb.Ruling.Value(f"RULING_{verdict.ruling.name}"),
                members=[
                    pb.Member(
                        rank_in_group=member.rank_in_group,
                        arrived=member.arrival is not None,
                        contract=member.arrival or "",
                    )
                    for member in verdict.members
                ],
                payloads=verdict.payloads,
            )
        )
    )


def verdict_of(message: pb.Verdict) -> Verdict:
    """A verdict as the core has it. Raises ValueError for a ruling that is not known."""
    if message.ruling == pb.RULING_GO and not (message.payloads or message.members):
        return GO
    name = pb.Ruling.Name(message.ruling).removeprefix("RULING_")
    if name not in Ruling.__members__:
        raise ValueError(f"not a ruling: {message.ruling}")
    return Verdict(
        Ruling[name],
        tuple(Member(m.rank_in_group, m.contract if m.arrived else None) for m in message.members),
        tuple(message.payloads),
    )


def pack_abort(generation: int, ended: Ended) -> bytes:
    """The generation is over."""
    return pack(
        pb.Frame(abort=pb.Abort(generation=generation, rank=ended.rank, lost=ended.lost, reason=ended.reason))
    )


def ended_of(message: pb.Abort) -> Ended:
    """The end of a generation as the core has it."""
    return Ended(message.rank, message.lost, message.reason)
