"""torch.distributed on a rank as generations come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rankbridge.harness.usage import until
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.store import GenerationStore
from rankbridge_server.job.torch_world import TorchWorld

SECONDS = 30
LOST = BridgeError.of(ErrorCode.PEER_LOST, "rank 1 is lost")


class OnlyMember:
    """A generation of one rank. `ended`: what is to be called when it ends."""

    number, rank, world_size = 1, 0, 1

    def __init__(self) -> None:
        self.ended: dict[object, Callable[[BridgeError], None]] = {}
        generation: Any = self
        self.store = GenerationStore(generation)

    def views(self) -> list[Any]:
        return []

    def await_end(self, key: object, ended: Callable[[BridgeError], None]) -> None:
        self.ended[key] = ended

    def forget_end(self, key: object) -> None:
        del self.ended[key]


@pytest.fixture
def world() -> Iterator[TorchWorld]:
    made = TorchWorld("", "cpu")
    yield made
    made._leave()


def enter(world: TorchWorld) -> OnlyMember:
    generation: Any = OnlyMember()
    world.enter(generation)
    return generation  # type: ignore[no-any-return]


def is_shutting() -> bool:
    return any(it.name == "shutting" for it in threading.enumerate())


def test_the_end_of_a_generation_that_is_heard_late_leaves_the_next_one_alone(world: TorchWorld) -> None:
    first = enter(world)
    enter(world)
    # The other ranks have shut what this one waited for; only then it hears of the end.
    for ended in first.ended.values():
        ended(LOST)
    assert until(lambda: not is_shutting(), SECONDS)
    error = RuntimeError("no batch")
    world.explain(error)
    assert error.__cause__ is None


def test_the_end_of_a_generation_is_the_cause_until_it_is_left(world: TorchWorld) -> None:
    generation = enter(world)
    for ended in generation.ended.values():
        ended(LOST)
    assert is_shutting()
    error = RuntimeError("no batch")
    world.explain(error)
    assert error.__cause__ is LOST
