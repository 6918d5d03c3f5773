"""What other sidecars say, also newer ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rankbridge.v1 import error_pb2
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase, RankState
from rankbridge_server.core.groups.forming import form
from rankbridge_server.core.groups.preparation import RankAddress
from rankbridge_server.core.groups.regrouping import PeerState
from rankbridge_server.service.wire import wire

NEWER = 999


def test_codes_phases_and_states_of_a_newer_peer_are_told_in_words_known_here() -> None:
    detail = error_pb2.RankDetail(rank=2, state=NEWER, detail="somehow")  # type: ignore[arg-type]
    message = error_pb2.Error(code=NEWER, phase=NEWER, message="news", indefinite=True, ranks=[detail])  # type: ignore[arg-type]
    failure = wire.failure(message)
    assert (failure.code, failure.phase, failure.indefinite) == (ErrorCode.INTERNAL, Phase.UNSPECIFIED, True)
    assert failure.message == "error code 999: news"
    assert [(it.rank, it.state, it.detail) for it in failure.ranks] == [(2, RankState.FAILED, "somehow")]


@pytest.mark.parametrize("code", [it for it in error_pb2.ErrorCode.values() if it])
def test_every_code_of_the_wire_is_read_as_it_is_written(code: error_pb2.ErrorCode.ValueType) -> None:
    failure = wire.failure(error_pb2.Error(code=code, message="as it was"))
    assert (wire.pack_error(failure).code, failure.message) == (code, "as it was")


class Peer:
    """A rank whose answers cannot be understood, or which only notes that the forming was aborted."""

    def __init__(self, strange: bool) -> None:
        self.strange = strange
        self.aborted: list[int] = []

    def describe(self, timeout: float) -> PeerState:
        return PeerState(seen=0, formed=0, rank=None, groups=())

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        if self.strange:
            raise KeyError("a word of tomorrow")
        return RankAddress(rank, "", {})

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        raise AssertionError("nothing is committed")

    def abort(self, number: int, reason: str, timeout: float) -> None:
        self.aborted.append(number)


def test_an_answer_that_is_not_understood_aborts_the_forming_on_every_rank() -> None:
    peers = [Peer(strange=rank == 1) for rank in range(3)]
    with pytest.raises(BridgeError, match="a word of tomorrow") as raised:
        form(peers, (), timeout=10)
    assert raised.value.failure.code is ErrorCode.FORMING_FAILED
    assert [it.rank for it in raised.value.failure.ranks] == [1]
    assert [peer.aborted for peer in peers] == [[1]] * 3
