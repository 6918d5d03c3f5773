"""Forming the next generation of a gang, in two phases, from any sidecar."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..coordinator import GroupDescription
from ..errors import BridgeError, ErrorCode, Phase, RankDetail, RankState
from .preparation import RankAddress
from .regrouping import PeerState, regroup

Answer = TypeVar("Answer")


class Peer(Protocol):
    """A rank, as the forming sidecar reaches it. Methods take `timeout` seconds at most, and raise BridgeError."""

    def describe(self, timeout: float) -> PeerState:
        """The state of the rank before forming."""

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        """First phase."""

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        """Second phase."""

    def abort(self, number: int, reason: str, timeout: float) -> None:
        """Ends the generation that was prepared or formed."""


@dataclass(frozen=True, slots=True)
class Formed:
    """A formed generation. `took`: seconds."""

    generation: int
    world_size: int
    took: float


def form(
    peers: Sequence[Peer], groups: Sequence[GroupDescription], timeout: float, *, forget_groups: bool = False
) -> Formed:
    """Forms the next generation of `peers`, which become ranks 0, 1, ... in order.

    Makes the groups of the previous generation again, unless `forget_groups`, and `groups` in addition. Either all
    ranks have the new generation or none has: when one fails, all are aborted. `timeout`: seconds for everything.
    Raises FORMING_FAILED, with each rank's part.
    """
    start = time.monotonic()

    def left() -> float:
        return max(0.001, start + timeout - time.monotonic())

    with ThreadPoolExecutor(len(peers), thread_name_prefix="forming") as pool:
        states = _all(pool, peers, "describe", lambda rank, peer: peer.describe(left()))
        number = max(state.seen for state in states) + 1
        made = list(groups) if forget_groups else regroup(states, groups)
        try:
            addresses = _all(
                pool,
                peers,
                "prepare",
                lambda rank, peer: peer.prepare(number, rank, len(peers), made, left()),
            )
            secret = secrets.token_bytes(32)
            _all(pool, peers, "commit", lambda rank, peer: peer.commit(number, addresses, secret, left()))
        except BridgeError as error:
            _abort(pool, peers, number, str(error), left)
            raise
    return Formed(number, len(peers), time.monotonic() - start)


def _all(
    pool: ThreadPoolExecutor, peers: Sequence[Peer], what: str, ask: Callable[[int, Peer], Answer]
) -> list[Answer]:
    futures = [pool.submit(ask, rank, peer) for rank, peer in enumerate(peers)]
    answers: list[Answer] = []
    details: list[RankDetail] = []
    for rank, future in enumerate(futures):
        try:
            answers.append(future.result())
        except Exception as error:
            # Whatever the error is, the other ranks must abort.
            detail = str(error) if isinstance(error, BridgeError) else f"{type(error).__name__}: {error}"
            details.append(RankDetail(rank=rank, rank_in_group=rank, state=RankState.FAILED, detail=detail))
    if details:
        raise BridgeError.of(
            ErrorCode.FORMING_FAILED,
            f"{what} failed at {len(details)} of {len(peers)} ranks; first: {details[0].detail}",
            phase=Phase.FORMING,
            ranks=tuple(details),
        )
    return answers


def _abort(
    pool: ThreadPoolExecutor, peers: Sequence[Peer], number: int, reason: str, left: Callable[[], float]
) -> None:
    def ask(rank: int, peer: Peer) -> None:
        try:
            peer.abort(number, reason, max(1.0, left()))
        except BridgeError:
            # A rank that cannot be reached shares no generation with the others, which is the aim of an abort.
            return

    _all(pool, peers, "abort", ask)
