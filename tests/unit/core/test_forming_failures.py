"""What a forming that fails leaves behind: nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.coordinator import Coordinator, GroupDescription, Joining
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.generation import Generation
from rankbridge_server.core.groups.group import Group
from rankbridge_server.core.links import Ended


class Watched:
    """Stands for a coordinator, and notes that it was closed."""

    def __init__(self, coordinator: Coordinator, error: Exception | None) -> None:
        self._coordinator = coordinator
        self._error = error
        self.closed = threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._coordinator, name)

    def barrier(self, timeout: float) -> None:
        if self._error is not None:
            raise self._error
        self._coordinator.barrier(timeout)

    def close(self) -> None:
        self._coordinator.close()
        self.closed.set()


class WatchedBackend(FakeBackend):
    """A backend whose coordinators are watched, and fail their first collective with `error`."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(FakeHub())
        self.made: list[Watched] = []
        self._error = error

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        joining = super().join(group, rank_in_group, generation)
        connect: Callable[[Sequence[bytes], float], Coordinator] = joining.connect

        def watched(addresses: Sequence[bytes], timeout: float) -> Coordinator:
            self.made.append(Watched(connect(addresses, timeout), self._error))
            coordinator: Coordinator = self.made[-1]  # type: ignore[assignment]
            return coordinator

        joining.connect = watched  # type: ignore[method-assign]
        return joining


def lanes() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("lane:")}


@pytest.mark.parametrize(
    "error", [BridgeError.of(ErrorCode.BACKEND_FAILED, "no route"), RuntimeError("no route")], ids=type
)
def test_a_group_that_carries_no_collective_is_closed_again(error: Exception) -> None:
    before, backend = lanes(), WatchedBackend(error)
    with pytest.raises(BridgeError, match="no route") as raised:
        LocalGang(1, backends=[backend])
    assert raised.value.failure.code is ErrorCode.FORMING_FAILED
    assert [it.closed.wait(10) for it in backend.made] == [True]
    until(lambda: lanes() <= before)


def test_a_group_for_which_the_generation_ended_too_soon_is_closed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install = Generation.install

    def ended(self: Generation, group: Group) -> None:
        error = BridgeError.of(ErrorCode.PEER_LOST, "rank 1 is lost")
        self.end(error, Ended(1, True, "rank 1 is lost"))
        install(self, group)

    monkeypatch.setattr(Generation, "install", ended)
    before, backend = lanes(), WatchedBackend(None)
    with pytest.raises(BridgeError, match="rank 1 is lost") as raised:
        LocalGang(1, backends=[backend])
    assert raised.value.failure.code is ErrorCode.FORMING_FAILED
    assert [it.closed.wait(10) for it in backend.made] == [True]
    until(lambda: lanes() <= before)
