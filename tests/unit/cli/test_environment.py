"""What a launcher says in the environment."""

from __future__ import annotations

import pytest

from rankbridge_server.cli.environment import Launched, LaunchError

MINIMAL = {"RANK": "5", "WORLD_SIZE": "8"}
HOSTS = {**MINIMAL, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "NUM_NODES": "2"}


def read(environ: dict[str, str], without: str = "") -> Launched:
    return Launched.read({key: it for key, it in environ.items() if key != without}, None, None)


def test_a_gang_on_one_host_says_rank_and_size_alone() -> None:
    it = read(MINIMAL)
    assert (it.rank, it.world_size, it.local_rank, it.local_world_size) == (5, 8, 5, 0)
    assert (it.master, it.fs_local_rank, it.attempt) == (None, 5, 0)


def test_what_the_command_line_says_comes_first() -> None:
    it = Launched.read(MINIMAL, 1, 2)
    assert (it.rank, it.world_size, it.local_rank) == (1, 2, 1)


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    unset = dict.fromkeys([*HOSTS, "MASTER_ADDR", "FS_LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT"], "")
    assert read({**unset, **MINIMAL}) == read(MINIMAL)
    with pytest.raises(LaunchError, match="WORLD_SIZE is not set"):
        read({**MINIMAL, "WORLD_SIZE": ""})


@pytest.mark.parametrize("without", ["", "NUM_NODES", "LOCAL_WORLD_SIZE"])
def test_hosts_are_said_by_their_number_or_their_size(without: str) -> None:
    it = read(HOSTS, without)
    assert (it.local_rank, it.local_world_size, it.fs_local_rank) == (1, 4, 1)


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        ({}, 1),
        ({"OLMO_SHARED_FS": "1"}, 5),
        ({"OLMO_SHARED_FS": "true"}, 1),
        ({"OLMO_SHARED_FS": "1", "FS_LOCAL_RANK": "3"}, 3),
        ({"FS_LOCAL_RANK": "0"}, 0),
    ],
)
def test_who_shares_a_file_system(environ: dict[str, str], rank: int) -> None:
    assert read({**HOSTS, **environ}).fs_local_rank == rank


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"WORLD_SIZE": "8"}, ["RANK is not set"]),
        ({"RANK": "5"}, ["WORLD_SIZE is not set"]),
        ({**MINIMAL, "RANK": "8"}, ["RANK is 8", "WORLD_SIZE 8"]),
        ({**MINIMAL, "RANK": "-1"}, ["RANK is '-1'"]),
        ({**MINIMAL, "MASTER_ADDR": "host"}, ["MASTER_PORT is not set"]),
        ({**MINIMAL, "LOCAL_WORLD_SIZE": "4"}, ["LOCAL_RANK is not set", "LOCAL_WORLD_SIZE is"]),
        ({**MINIMAL, "NUM_NODES": "2"}, ["LOCAL_RANK is not set", "NUM_NODES is"]),
        ({**MINIMAL, "LOCAL_RANK": "1"}, ["neither LOCAL_WORLD_SIZE nor NUM_NODES is set"]),
        ({**HOSTS, "LOCAL_RANK": "4"}, ["LOCAL_RANK is 4", "LOCAL_WORLD_SIZE 4"]),
        ({**HOSTS, "NUM_NODES": "3"}, ["NUM_NODES is 3", "LOCAL_WORLD_SIZE 4", "WORLD_SIZE 8"]),
        ({**HOSTS, "NUM_NODES": "0"}, ["NUM_NODES is 0"]),
        ({**MINIMAL, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "9"}, ["LOCAL_WORLD_SIZE is 9", "WORLD_SIZE 8"]),
        ({**HOSTS, "FS_LOCAL_RANK": "x"}, ["FS_LOCAL_RANK is 'x'"]),
    ],
)
def test_errors_name_the_variable(environ: dict[str, str], named: list[str]) -> None:
    with pytest.raises(LaunchError) as raised:
        read(environ)
    assert all(it in str(raised.value) for it in named), raised.value
