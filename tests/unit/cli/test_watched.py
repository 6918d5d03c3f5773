"""Records of `rankbridge watch`, in the words of a gang's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rankbridge_server.cli.watched import records
from rankbridge_server.job.watch.ring import KINDS, ON_DEVICE, Ring, packed_shape


def write_on_devices(folder: Path, rank: int, came: Sequence[float], sends: int) -> None:
    """A record of one rank of two: these calls on a device, which have returned, and so many of one message."""
    ring = Ring.create(folder, rank, 2)
    group = ring.text({"group": "0", "ranks": [0, 1], "description": "default_pg"})

    def call(kind: str, at: float, number: int, peer: int) -> None:
        place = ring.begin(
            *(
                at,
                number,
                KINDS.index(kind),
                1,
                1,
                ON_DEVICE,
                group,
                1,
                0,
                -1,
                -1,
                peer,
                0 if peer >= 0 else -1,
                2,
            ),
            packed_shape((2,)),
        )
        ring.end(place, at + 0.5)

    for number, at in enumerate(came, 1):
        call("all_reduce", at, number, -1)
    for number in range(1, sends + 1):
        call("recv" if rank else "send", 100.0, number, 1 - rank)


def test_what_devices_do_is_under_way_until_the_last_member_has_called_it(tmp_path: Path) -> None:
    write_on_devices(tmp_path, 0, [1.0, 2.0, 3.0], sends=2)
    write_on_devices(tmp_path, 1, [1.2, 8.0], sends=1)
    found = {rank: [it.done for it in calls] for rank, calls in records(tmp_path).items()}
    assert found == {
        0: [pytest.approx(0.5), pytest.approx(6.0), None, pytest.approx(0.5), None],
        1: [pytest.approx(0.5), pytest.approx(0.5), pytest.approx(0.5)],
    }


def write(folder: Path, rank: int, groups: Mapping[str, tuple[str, Sequence[int]]]) -> None:
    """A record of one rank of four, with a call of each of these groups."""
    ring = Ring.create(folder, rank, 4)
    for name, (description, ranks) in groups.items():
        group = ring.text({"group": name, "ranks": list(ranks), "description": description})
        shape = packed_shape((2,))
        ring.begin(1.0, 1, KINDS.index("all_reduce"), 1, 1, 0, group, 1, 0, 0, -1, -1, -1, 2, shape)


def test_groups_of_one_name_and_groups_without_a_name_are_told_by_their_ranks(tmp_path: Path) -> None:
    write(
        tmp_path, 0, {"0": ("default_pg", range(4)), "tp:0@0": ("tp:0", [0, 1]), "7": ("undefined", [0, 2])}
    )
    write(tmp_path, 3, {"0": ("default_pg", range(4)), "tp:0@2": ("tp:0", [2, 3]), "8": ("dp", [1, 3])})
    assert {rank: [it.group for it in found] for rank, found in records(tmp_path).items()} == {
        0: ["world", "tp:0[0-1]", "group[0, 2]"],
        3: ["world", "tp:0[2-3]", "dp"],
    }
