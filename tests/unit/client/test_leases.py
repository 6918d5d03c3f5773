"""Sessions that end by themselves when nobody renews them, and what the client does so that they do not."""

from __future__ import annotations

import asyncio
import gc
import threading
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import connected
from tests.unit.client.sidecars import WAIT, SidecarGang

import rankbridge
from rankbridge.v1 import ref_service_pb2 as ref_pb

LEASE = 4.0
"""Long enough for renewals to come in time on a machine that is busy, in seconds."""

Method = Callable[[Any, grpc.ServicerContext], Any]


class Renewals:
    """Counts what ranks are asked to renew, and lets a test wait for it."""

    def __init__(self, sidecars: SidecarGang) -> None:
        self._changed = threading.Condition()
        self._counts: dict[tuple[int, str], int] = {}
        for sidecar in sidecars.sidecars:
            sidecar.answers["RenewSession"] = self.answering(sidecar.rank)

    def answering(self, rank: int, then: Method | None = None) -> Method:
        """A method of that rank that counts, and answers as `then` or well."""

        def renew(request: Any, context: grpc.ServicerContext) -> Any:
            with self._changed:
                key = rank, request.session_id
                self._counts[key] = self._counts.get(key, 0) + 1
                self._changed.notify_all()
            return then(request, context) if then else ref_pb.RenewSessionResponse(lease_ms=1)

        return renew

    def wait(self, rank: int, session_id: str, more: int) -> None:
        """Waits until the session was renewed on the rank `more` times from now on."""
        with self._changed:
            enough = self._counts.get((rank, session_id), 0) + more
            assert self._changed.wait_for(lambda: self._counts.get((rank, session_id), 0) >= enough, WAIT), (
                f"rank {rank} was not asked to renew {session_id}"
            )

    def __getitem__(self, key: tuple[int, str]) -> int:
        with self._changed:
            return self._counts.get(key, 0)


def renewing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rankbridge-leases"]


@pytest.mark.parametrize(
    ("options", "lease_ms"), [({}, 30_000), ({"lease": 2.5}, 2_500), ({"lease": None}, 0), ({"lease": 0}, 0)]
)
def test_sessions_are_opened_with_the_lease(
    front: str, sidecars: SidecarGang, options: dict[str, Any], lease_ms: int
) -> None:
    with connected(front, sidecars.endpoints(), **options) as gang, gang.session():
        for sidecar in sidecars.sidecars:
            assert [request.lease_ms for request in sidecar.requests["OpenSession"]] == [lease_ms] * 2


@pytest.mark.parametrize("lease", [-1, float("inf"), 2**32])
def test_a_lease_that_is_none_is_refused(front: str, sidecars: SidecarGang, lease: float) -> None:
    with (
        pytest.raises(rankbridge.InvalidArgumentError),
        connected(front, sidecars.endpoints(), lease=lease),
    ):
        pass
    assert "OpenSession" not in sidecars[0].requests
    assert renewing_threads() == []


def test_without_a_lease_nothing_is_renewed(sidecars: SidecarGang) -> None:
    with rankbridge.connect(sidecars.endpoints(), lease=None) as gang:
        assert gang.session_id
        assert renewing_threads() == []


def test_every_session_is_renewed_on_every_rank_until_it_is_closed(sidecars: SidecarGang) -> None:
    renewals = Renewals(sidecars)
    with rankbridge.connect(sidecars.endpoints(), lease=0.3) as gang:
        own = gang.session_id
        with gang.session() as first, gang.session() as second:
            for rank in range(4):
                for session_id in (own, first, second):
                    renewals.wait(rank, session_id, 2)
        before = renewals[0, first]
        renewals.wait(0, own, 3)
        # One round of renewing may have been under way when it was closed.
        assert renewals[0, first] <= before + 1
        assert len(renewing_threads()) == 1
    assert renewing_threads() == []


def test_the_asyncio_front_renews_in_a_task(sidecars: SidecarGang) -> None:
    renewals = Renewals(sidecars)

    async def run() -> None:
        async with await rankbridge.aconnect(sidecars.endpoints(), lease=0.3) as gang:
            async with gang.session() as inner:
                for session_id in (gang.session_id, inner):
                    for rank in range(4):
                        await asyncio.to_thread(renewals.wait, rank, session_id, 2)
            assert "rankbridge-leases" in [task.get_name() for task in asyncio.all_tasks()]
        assert "rankbridge-leases" not in [task.get_name() for task in asyncio.all_tasks()]

    asyncio.run(run())


def test_a_rank_that_refuses_or_does_not_answer_is_asked_again_and_holds_up_no_other(
    sidecars: SidecarGang,
) -> None:
    renewals = Renewals(sidecars)
    stuck = threading.Event()
    unknown = sidecars[1].error("UNKNOWN_SESSION", "no such session")

    def never(request: Any, context: grpc.ServicerContext) -> Any:
        context.add_callback(stuck.set)
        stuck.wait(WAIT)
        return ref_pb.RenewSessionResponse()

    sidecars[1].answers["RenewSession"] = renewals.answering(
        1, lambda request, context: ref_pb.RenewSessionResponse(error=unknown)
    )
    sidecars[2].answers["RenewSession"] = renewals.answering(2, never)
    with rankbridge.connect(sidecars.endpoints(), lease=0.3) as gang:
        for rank in range(4):
            renewals.wait(rank, gang.session_id, 3)
    assert stuck.is_set()


def test_a_gang_that_is_forgotten_is_renewed_no_more(sidecars: SidecarGang) -> None:
    gang = rankbridge.connect(sidecars.endpoints(), lease=0.3)
    (thread,) = renewing_threads()
    del gang
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_forming_opens_every_session_again(front: str, sidecars: SidecarGang) -> None:
    with connected(front, sidecars.endpoints(), timeout=20) as gang, gang.session() as inner:
        for sidecar in sidecars.sidecars:
            sidecar.sessions.clear()
        gang.form()
        assert all(sidecar.sessions == {gang._session_id, inner} for sidecar in sidecars.sidecars)


def sessions(gang: Any) -> list[set[str]]:
    return [{usage.session_id for usage in status.sessions} for status in gang.status()]


def test_real_ranks_keep_what_is_renewed_and_free_what_is_not(fake4: RunningGang) -> None:
    abandoned = f"abandoned-{uuid.uuid4().hex}"
    with rankbridge.connect(fake4.description, lease=LEASE) as gang:
        ref = gang[0].put(1.0)
        for rank in gang:
            assert rank.open_session(abandoned, lease=LEASE) == abandoned
        # Asking for the status renews no session, so this ends when the lease of the one has: it was opened later
        # than the other, and is as long.
        while any(abandoned in there for there in sessions(gang)):
            pass
        assert all(gang.session_id in there for there in sessions(gang))
        assert gang.get(ref) == 1.0
        with pytest.raises(rankbridge.UnknownSessionError):
            gang[0].renew_session(abandoned)
        assert gang[0].renew_session(gang.session_id) == LEASE
        assert gang[0].open_session(gang.session_id, lease=None) == gang.session_id
        assert gang[0].renew_session(gang.session_id) == 0
