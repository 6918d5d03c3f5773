"""Records of `rankbridge watch`, in the words of a gang's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rankbridge_server.cli.watched import records
from rankbridge_server.job.watch.ring import KINDS, Ring, packed_shape


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
