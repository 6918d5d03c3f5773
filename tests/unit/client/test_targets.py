from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.support.strangers import needs_another_user

from rankbridge import InvalidArgumentError
from rankbridge._transport.targets import resolve


@pytest.fixture
def unix_socket(tmp_path: Path) -> Iterator[Path]:
    """A unix socket that exists."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        yield path


def _endpoints(*by_rank: list[str]) -> dict[str, Any]:
    return {"ranks": [{"rank": rank, "endpoints": endpoints} for rank, endpoints in enumerate(by_rank)]}


@pytest.mark.parametrize("form", ["unix:{}", "unix://{}"])
def test_a_unix_socket_that_exists_here_is_preferred(unix_socket: Path, form: str) -> None:
    unix = form.format(unix_socket)
    assert resolve([["127.0.0.1:1", unix]]) == (unix,)


def test_a_unix_socket_of_another_machine_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    endpoints = [f"unix:{tmp_path}/none", f"unix:{tmp_path}/file", "10.0.0.7:50051", "10.0.0.8:50051"]
    assert resolve([endpoints]) == ("10.0.0.7:50051",)


def test_the_only_endpoint_is_taken_as_it_is() -> None:
    assert resolve(["unix:/none", "dns:///rank-1:1"]) == ("unix:/none", "dns:///rank-1:1")


def test_with_tls_unix_sockets_are_passed_over(unix_socket: Path) -> None:
    assert resolve([[f"unix:{unix_socket}", "host:1"]], secure=True) == ("host:1",)


def test_a_file_and_its_content_mean_the_same_in_any_order_of_ranks(tmp_path: Path) -> None:
    content = _endpoints(["a:1"], ["b:1"], ["c:1"])
    content["ranks"].reverse()
    path = tmp_path / "endpoints.json"
    path.write_text(json.dumps(content))
    assert resolve(path) == resolve(str(path)) == resolve(content) == ("a:1", "b:1", "c:1")


@pytest.mark.parametrize(
    "target",
    [
        [],
        [[]],
        [""],
        {},
        {"ranks": []},
        {"ranks": [{"rank": 0}]},
        {"ranks": [{"rank": 1, "endpoints": ["a:1"]}]},
        {"ranks": [{"rank": 0, "endpoints": ["a:1"]}, {"rank": 0, "endpoints": ["b:1"]}]},
        {"ranks": [{"rank": "zero", "endpoints": ["a:1"]}]},
        {"ranks": [{"rank": 0, "endpoints": [7]}]},
    ],
)
def test_malformed_targets_are_refused(target: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        resolve(target)


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_files_that_hold_no_endpoints_are_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "endpoints.json"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError, match=r"endpoints\.json"):
        resolve(path)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve(tmp_path / "none.json")


@needs_another_user
def test_the_socket_of_another_user_is_not_taken(unix_socket: Path) -> None:
    os.chown(unix_socket, 12345, 12345)
    endpoints = [[f"unix:{unix_socket}", "127.0.0.1:1"]]
    assert resolve(endpoints) == (f"unix:{unix_socket}",)
    for user, taken in ((12345, f"unix:{unix_socket}"), (54321, "127.0.0.1:1")):
        with mock.patch("os.geteuid", return_value=user):
            assert resolve(endpoints) == (taken,)
