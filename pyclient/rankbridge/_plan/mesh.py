"""Meshes: the ranks of a gang in rows, columns and more dimensions, and the groups along them. Pure: asks no rank.

A dimension of a mesh is called an axis; `dim` is of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rankbridge._plan.groups import Group, Member, Place, by_host, listed
from rankbridge.errors import InvalidArgumentError, RankOutOfRangeError

LOCAL = "local"
"""The axis whose lines are the ranks on each host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Ranks in row-major order along named axes, and one group for each line of each axis.

    The line of a rank along an axis are the ranks that differ from it in that axis's coordinate alone. A flattened
    axis stands for several: its lines are of the ranks that differ in any of them. ``local`` is the axis of those
    on one host. Wherever an axis is asked for, its name may be any of these. The i-th line of axis "tp", counted in
    the order of their first ranks in the mesh, is the group "mesh/tp/i".

    Every axis has groups of its own, one of size 1 too (each of its lines is one rank), so that a program need not
    know the sizes, and operations along one axis are not in the order of another.

    Attributes:
        name: What the names of its groups begin with.
        axes: Names of the axes, outermost first.
        sizes: Size of each.
        ranks: Ranks of the gang in row-major order: the last axis changes fastest.
        flattened: Names of flattened axes, each with the axes that it stands for.
        local: Whether it has the axis "local".
        places: Where each rank runs, in the order of `ranks`. Empty: not asked for.
        backend: What moves its groups' data. Empty: they have not been made.
        generation: Generation in which its groups were seen last. 0: they have not been made.
    """

    name: str
    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    flattened: tuple[tuple[str, tuple[str, ...]], ...] = ()
    local: bool = False
    places: tuple[Place, ...] = ()
    backend: str = ""
    generation: int = 0

    @classmethod
    def plan(
        cls,
        axes: Mapping[str, int],
        ranks: int | Iterable[int],
        *,
        name: str = "mesh",
        flattened: Mapping[str, Iterable[str]] | None = None,
        local: bool = False,
        places: Iterable[Place] = (),
    ) -> Mesh:
        """Lays ranks out; makes no groups. ``Gang.new_mesh`` does both.

        Args:
            axes: Size of each axis, outermost first. One of them may be -1: what the others leave.
            ranks: The ranks in row-major order, none twice; or their number: all from 0.
            name: What the names of the groups shall begin with.
            flattened: Axes that each flattened axis stands for: ``{"dp": ["dp_replicate", "dp_shard"]}``.
            local: Whether to have the axis "local", which needs `places`.
            places: Where each rank runs, in the order of `ranks`. Empty: not known.

        Raises:
            InvalidArgumentError: The sizes do not fit the number of ranks, or an argument is malformed.
        """
        laid = tuple(range(ranks)) if isinstance(ranks, int) else tuple(ranks)
        sizes = _sizes(name, dict(axes), laid)
        flat = tuple((axis, tuple(over)) for axis, over in (flattened or {}).items())
        given_places = tuple(places)
        _check_names(name, tuple(axes), flat, local=local)
        if (given_places or local) and len(given_places) != len(laid):
            raise _refusal(name, "one place for each rank", str(len(laid)), str(len(given_places)))
        return cls(
            name=name,
            axes=tuple(axes),
            sizes=sizes,
            ranks=laid,
            flattened=flat,
            local=local,
            places=given_places,
        )

    def __len__(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    def __contains__(self, rank: object) -> bool:
        """Says whether a rank is in the mesh."""
        return rank in self.ranks

    @property
    def shape(self) -> dict[str, int]:
        """Size of each axis, outermost first."""
        return dict(zip(self.axes, self.sizes, strict=True))

    def size(self, axis: str) -> int:
        """Gives the size of an axis; of a flattened one, the product of those that it stands for.

        Raises:
            InvalidArgumentError: There is no such axis, or it is "local", whose lines may differ in size.
        """
        shape = self.shape
        return math.prod(shape[over] for over in self._over(axis))

    def coordinates(self, rank: int) -> dict[str, int]:
        """Gives where a rank is: its coordinate on each axis, outermost first.

        Raises:
            InvalidArgumentError: It is not in the mesh.
        """
        return self._coordinates(self._place(rank))

    def rank_at(self, coordinates: Mapping[str, int]) -> int:
        """Gives the rank with these coordinates, one for each axis.

        Raises:
            InvalidArgumentError: An axis is missing, or there is no such axis.
            RankOutOfRangeError: A coordinate is not below its axis's size.
        """
        if set(coordinates) != set(self.axes):
            raise _refusal(
                self.name, "one coordinate for each axis", ", ".join(self.axes), ", ".join(coordinates)
            )
        place = 0
        for axis, size in zip(self.axes, self.sizes, strict=True):
            if not 0 <= coordinates[axis] < size:
                raise RankOutOfRangeError(
                    f"mesh {self.name!r} has no coordinate {coordinates[axis]} on axis {axis!r}",
                    operation="mesh",
                    expected=f"0 to {size - 1}",
                    got=str(coordinates[axis]),
                )
            place = place * size + coordinates[axis]
        return self.ranks[place]

    def lines(self, axis: str) -> list[tuple[int, ...]]:
        """Gives the ranks of every line along an axis, in the order in which their groups are numbered.

        Raises:
            InvalidArgumentError: There is no such axis.
        """
        if axis == LOCAL and self.local:
            return list(by_host(self.ranks, [place.host for place in self.places]).values())
        over = self._over(axis)
        found: dict[tuple[int, ...], list[int]] = {}
        for place, rank in enumerate(self.ranks):
            coordinates = self._coordinates(place)
            others = tuple(coordinates[other] for other in self.axes if other not in over)
            found.setdefault(others, []).append(rank)
        return [tuple(line) for line in found.values()]

    def line(self, axis: str, rank: int, *, within: str | None = None) -> tuple[int, ...]:
        """Gives the ranks of the line along an axis on which a rank is, in mesh order.

        Args:
            axis: The axis.
            rank: The rank.
            within: Another axis: only those that are on its line along that one too.

        Raises:
            InvalidArgumentError: There is no such axis, or the rank is not in the mesh.
        """
        line = self.lines(axis)[self._line_number(axis, rank)]
        if within is None:
            return line
        other = self.line(within, rank)
        return tuple(one for one in line if one in other)

    def groups(self, axis: str | None = None) -> list[Group]:
        """Gives the groups of all lines of one axis, or of all.

        Raises:
            InvalidArgumentError: There is no such axis.
        """
        wanted = self._all_axes() if axis is None else (axis,)
        return [
            self._group(one, number, line) for one in wanted for number, line in enumerate(self.lines(one))
        ]

    def group(self, axis: str, rank: int) -> Group:
        """Gives the group to which a rank belongs along an axis.

        Raises:
            InvalidArgumentError: There is no such axis, or the rank is not in the mesh.
        """
        number = self._line_number(axis, rank)
        return self._group(axis, number, self.lines(axis)[number])

    def member(self, axis: str, rank: int) -> Member:
        """Gives what a rank is in its group along an axis.

        Raises:
            InvalidArgumentError: There is no such axis, or the rank is not in the mesh.
        """
        return self.group(axis, rank).member(rank)

    def _coordinates(self, place: int) -> dict[str, int]:
        found: list[int] = []
        for size in reversed(self.sizes):
            place, coordinate = divmod(place, size)
            found.append(coordinate)
        return dict(zip(self.axes, reversed(found), strict=True))

    def _group(self, axis: str, number: int, line: tuple[int, ...]) -> Group:
        return Group(
            name=f"{self.name}/{axis}/{number}",
            ranks=line,
            backend=self.backend,
            generation=self.generation,
            places=tuple(self.places[self.ranks.index(rank)] for rank in line) if self.places else (),
        )

    def _line_number(self, axis: str, rank: int) -> int:
        lines = self.lines(axis)
        self._place(rank)
        return next(number for number, line in enumerate(lines) if rank in line)

    def _place(self, rank: int) -> int:
        if rank not in self.ranks:
            raise _refusal(self.name, f"rank {rank} is not in it", f"one of {listed(self.ranks)}", str(rank))
        return self.ranks.index(rank)

    def _over(self, axis: str) -> tuple[str, ...]:
        over = {**{axis: (axis,) for axis in self.axes}, **dict(self.flattened)}
        if axis not in over:
            raise _refusal(
                self.name, "there is no such axis", f"one of {', '.join(self._all_axes())}", repr(axis)
            )
        return over[axis]

    def _all_axes(self) -> tuple[str, ...]:
        return (*self.axes, *(axis for axis, _ in self.flattened), *((LOCAL,) if self.local else ()))


def _sizes(name: str, axes: Mapping[str, int], ranks: Sequence[int]) -> tuple[int, ...]:
    if len(set(ranks)) != len(ranks) or any(rank < 0 for rank in ranks):
        raise _refusal(name, "each rank once", "ranks of the gang, none twice", listed(ranks))
    open_axes = [axis for axis, size in axes.items() if size == -1]
    known = math.prod(size for size in axes.values() if size != -1)
    if not axes or not ranks or known < 1 or min(axes.values()) < -1 or len(open_axes) > 1:
        raise _refusal(
            name, "axes of size 1 or more", "one axis at least, at most one of size -1", str(dict(axes))
        )
    fits = len(ranks) % known == 0 if open_axes else len(ranks) == known
    if not fits:
        written = " x ".join(f"{axis} {'?' if size == -1 else size}" for axis, size in axes.items())
        raise _refusal(
            name,
            f"the axes do not fit the number of ranks: {written}",
            f"{'a multiple of ' if open_axes else ''}{known} rank{'s' if known > 1 else ''}",
            str(len(ranks)),
        )
    return tuple(len(ranks) // known if size == -1 else size for size in axes.values())


def _check_names(
    name: str, axes: Sequence[str], flattened: Sequence[tuple[str, tuple[str, ...]]], *, local: bool
) -> None:
    every = [*axes, *(axis for axis, _ in flattened), *([LOCAL] if local else ())]
    if len(set(every)) != len(every) or any(not axis or "/" in axis for axis in every) or not name:
        raise _refusal(name, "bad names", "each of its own, not empty, without '/'", ", ".join(every))
    for axis, over in flattened:
        if not over or len(set(over)) != len(over) or not set(over) <= set(axes):
            raise _refusal(
                name, f"{axis!r} does not flatten axes", f"some of {', '.join(axes)}", ", ".join(over)
            )


def _refusal(name: str, message: str, expected: str, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"mesh {name!r}: {message}", phase="check", operation="mesh", expected=expected, got=got
    )
