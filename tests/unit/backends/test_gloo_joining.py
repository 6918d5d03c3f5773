"""Forming a group on Gloo, by a process on its own."""

from __future__ import annotations

import pytest

from rankbridge_server.backends.gloo import GlooBackend
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError, ErrorCode

PAIR = GroupDescription("pair", (0, 1))


def test_an_address_that_was_abandoned_does_no_harm() -> None:
    joining = GlooBackend(connect_timeout=0.2).join(PAIR, 0, 1)
    joining.abandon()
    with pytest.raises(BridgeError) as error:
        joining.connect([joining.address], 30)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED


def test_a_host_name_that_is_not_this_hosts_is_an_error() -> None:
    with pytest.raises(BridgeError) as error:
        GlooBackend("192.0.2.1").join(PAIR, 0, 1)
    assert error.value.failure.code is ErrorCode.BACKEND_FAILED
    assert "192.0.2.1" in error.value.failure.message


def test_a_group_of_one_needs_nobody() -> None:
    joining = GlooBackend().join(GroupDescription("alone", (0,)), 0, 1)
    coordinator = joining.connect([joining.address], 30)
    coordinator.barrier(5)
    coordinator.close()
