"""The endpoints file has tokens: nobody else reads it, or has it written elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import pytest
from tests.support.strangers import needs_another_user

from rankbridge_server.core.tokens import Tokens
from rankbridge_server.sidecar import endpoints

TOKENS = Tokens.new()
GANG = endpoints.describe("gang", "gloo", 1, [1], [["unix:/some/where"]], TOKENS)


def test_it_is_the_owners_alone_whatever_the_umask_and_has_no_token_of_the_ranks(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.json"
    umask = os.umask(0)
    try:
        for _ in range(2):
            endpoints.write(path, GANG)
            assert path.stat().st_mode & 0o7777 == 0o600
    finally:
        os.umask(umask)
    assert json.loads(path.read_text())["tokens"] == {
        "observe": TOKENS.observe,
        "drive": TOKENS.drive,
        "own": TOKENS.own,
    }
    assert TOKENS.peer not in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "endpoints.json", tmp_path / "other"
    other.write_text("the owner's")
    path.symlink_to(other)
    endpoints.write(path, GANG)
    assert other.read_text() == "the owner's"
    assert not path.is_symlink()


def test_a_link_at_the_scratch_files_place_is_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "endpoints.json", tmp_path / "other"
    (tmp_path / ".endpoints.json.guessed").symlink_to(other)
    with mock.patch("secrets.token_hex", return_value="guessed"), pytest.raises(FileExistsError):
        endpoints.write(path, GANG)
    assert not other.exists()


@needs_another_user
def test_a_file_of_another_user_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    """Root replaces it, as it may; its old owner reads nothing of the new one."""
    path = tmp_path / "endpoints.json"
    path.touch()
    os.chown(path, 65534, 65534)
    old = os.open(path, os.O_RDONLY)
    endpoints.write(path, GANG)
    assert os.read(old, 1) == b""
    os.close(old)
    assert path.stat().st_uid == os.getuid()
    assert path.stat().st_mode & 0o7777 == 0o600
