"""Forming groups on the fake backend."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.coordinator import Coordinator, GroupDescription
from rankbridge_server.core.errors import BridgeError, ErrorCode

PAIR = GroupDescription("pair", (0, 1))


def formed(hub: FakeHub) -> list[Coordinator]:
    joinings = [FakeBackend(hub).join(PAIR, place, 1) for place in range(2)]
    addresses = [joining.address for joining in joinings]
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda joining: joining.connect(addresses, 5), joinings))


def meet(members: list[Coordinator]) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda member: member.barrier(5), members))


def test_a_group_is_formed_while_another_of_its_name_is_not_closed_yet() -> None:
    hub = FakeHub()
    first, second = formed(hub), formed(hub)
    meet(second)
    for member in first:
        member.close()
    meet(second)
    meet(formed(hub))


def test_addresses_of_another_group_are_refused() -> None:
    hub = FakeHub()
    other = FakeBackend(hub).join(GroupDescription("other", (0,)), 0, 1)
    joining = FakeBackend(hub).join(GroupDescription("alone", (0,)), 0, 1)
    with pytest.raises(BridgeError) as error:
        joining.connect([other.address], 5)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED


def test_a_member_that_waits_in_vain_says_how_many_came() -> None:
    hub = FakeHub()
    joinings = [FakeBackend(hub).join(PAIR, place, 1) for place in range(2)]
    with pytest.raises(BridgeError, match="1 of 2 members connected"):
        joinings[0].connect([joining.address for joining in joinings], 0.01)
