"""Sizes along one dimension, one for each member by rank in group: how members' tensors are parts of a whole.

All errors are INVALID_ARGUMENT with both sides: what does not fit what, expected and got.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BridgeError, invalid
from ..refs.tensors import TensorSpec

Sizes = tuple[int, ...]


def equal_sizes(spec: TensorSpec, dim: int, members: int) -> Sizes:
    """The sizes of equal parts of a tensor."""
    size = spec.shape[dim]
    if size % members:
        raise _misfit(
            "equal parts",
            "the tensor",
            f"a multiple of {members}, one part for each member, along dim {dim}",
            str(size),
        )
    return (size // members,) * members


def checked_sizes(name: str, sizes: Sequence[int], members: int) -> Sizes:
    """Sizes that a group of `members` can have. `name`: of the argument."""
    if len(sizes) != members:
        expected = f"{members} sizes, one for each member"
        raise _misfit(name, "the group", expected, f"{len(sizes)}: {list(sizes)}")
    if any(size < 0 for size in sizes):
        raise _misfit(name, "the group", "0 or more for each member", str(list(sizes)))
    return tuple(sizes)


def sizes_of_whole(name: str, sizes: Sequence[int], spec: TensorSpec, dim: int, members: int) -> Sizes:
    """Sizes of parts that make up this rank's tensor."""
    checked = checked_sizes(name, sizes, members)
    if sum(checked) != spec.shape[dim]:
        expected = f"a sum of {spec.shape[dim]}, the tensor's size along dim {dim}"
        raise _misfit(name, "the tensor", expected, f"{sum(checked)}: {list(checked)}")
    return checked


def sizes_around_part(
    name: str, sizes: Sequence[int], spec: TensorSpec, dim: int, members: int, rank_in_group: int
) -> Sizes:
    """Sizes of all members' tensors, of which this rank's is one."""
    checked = checked_sizes(name, sizes, members)
    if checked[rank_in_group] != spec.shape[dim]:
        expected = f"{spec.shape[dim]} for this rank, the tensor's size along dim {dim}"
        raise _misfit(name, "the tensor", expected, f"{checked[rank_in_group]}: {list(checked)}")
    return checked


def _misfit(what: str, whose: str, expected: str, got: str) -> BridgeError:
    return invalid(f"{what} do not fit {whose}", expected=expected, got=got)
