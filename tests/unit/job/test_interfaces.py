"""Addresses of this host, and which of them guard takes for ranks on other hosts."""

from __future__ import annotations

import pytest

from rankbridge_server.job.guard.network import network_address
from rankbridge_server.job.interfaces import address_of, address_towards, interface_of


def test_loopback_has_its_address() -> None:
    assert address_of("lo") == "127.0.0.1"
    assert interface_of("127.0.0.1") == "lo"
    assert address_of("no such interface") == ""
    assert address_towards("127.0.0.1", None) == "127.0.0.1"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_loopback_is_no_address_for_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert network_address(2, "127.0.0.1") == ""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    assert network_address(2, "127.0.0.1") == ""


def test_the_interface_is_the_one_that_torch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankbridge_server.job.guard.network.interfaces", lambda: ["lo", "eth1", "eth10"])
    monkeypatch.setattr(
        "rankbridge_server.job.guard.network.address_of",
        {"lo": "127.0.0.1", "eth1": "10.0.0.1", "eth10": "fd00::1"}.__getitem__,
    )
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth")
    assert network_address(2, "127.0.0.1") == "10.0.0.1"
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "=eth10")
    assert network_address(2, "127.0.0.1") == "[fd00::1]"
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "^eth")
    assert network_address(2, "127.0.0.1") == ""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth1,lo")
    assert network_address(2, "127.0.0.1") == "10.0.0.1"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert network_address(2, "127.0.0.1") == ""
