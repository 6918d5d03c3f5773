"""Addresses of TCP."""

from __future__ import annotations

import pytest

from rankbridge_server.core.address import Address


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("host", Address("host"), "host"),
        ("host:0", Address("host", 0), "host:0"),
        ("127.0.0.1:50051", Address("127.0.0.1", 50051), "127.0.0.1:50051"),
        ("::1", Address("::1"), "[::1]"),
        ("[::1]", Address("::1"), "[::1]"),
        ("[::1]:50051", Address("::1", 50051), "[::1]:50051"),
        ("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1), "[fe80::1%eth0]:1"),
    ],
)
def test_an_address_is_read_and_shown(text: str, address: Address, shown: str) -> None:
    assert Address.parse(text) == address
    assert str(address) == shown
    assert Address.parse(shown) == address


@pytest.mark.parametrize(
    "text", ["", ":1", "[]:1", "[::1", "[::1]1", "host:", "host:x", "host:-1", "host:65536"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Address.parse(text)
