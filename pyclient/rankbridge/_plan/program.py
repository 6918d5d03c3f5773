"""A program: collectives of one group that are described first, and then run as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from rankbridge._plan import operations as ops
from rankbridge._plan.operations import GatherLayout, ReduceOp
from rankbridge._plan.program_steps import Named, Step, Steps
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError

Taken: TypeAlias = "Sequence[Ref] | Ref | Named"
"""What a step takes: one ref of each member, in group order, in a gang's program; one ref in a rank's; or what an
earlier step gives."""


class Program(Steps):
    """Collectives of one group, of which one can take what another gives; described here, run by ``Gang.run``.

    For example::

        program = rankbridge.Program()
        with program.loop(1000):
            program.all_reduce(gradients, op="sum", in_place=True)
            program.barrier()
        total = program.all_reduce(counts)
        rows = program.all_gather(total, dim=0)
        (gathered,) = gang.run(program, keep=[rows])

    Describing asks no rank. The methods are a gang's, without options of the call: that goes to ``run``. For
    ``Gang.run`` they take one ref of each member, in group order, for ``Rank.run`` one ref of that rank; all of a
    program are of the same members, and on each of one session. A program can be run as often as one likes.

    Steps run in order. What one has changed in place, the steps after it see; the refs themselves have it when the
    whole program is done. Where `into` is given, the result takes the place of an earlier one: the steps after it, and
    those of the next turn of a loop, find it there. Its dtype and shape stay as they were. What a step in place gives
    is the tensor that it has changed: nothing else can be put there, and kept, it is the same ref.

    Each method raises ``InvalidArgumentError`` for what needs no rank to find out - wrong options, refs of
    other members or sessions, names of another program - and leaves the program as it was.
    """

    def barrier(self) -> None:
        """Waits for all members. See ``Gang.barrier``."""
        self._add(Step(operation="barrier", given=None, options={}, gives=None))

    # --- of CollectiveService: written by scripts/methods.py from the proto, but for what is elsewhere by hand

    def broadcast(
        self, refs: Taken, *, src_rank_in_group: int = 0, in_place: bool = False, into: Named | None = None
    ) -> Named:
        """Gives every member a tensor equal to the source's. See ``Gang.broadcast``."""
        return self._does("broadcast", refs, into, src_rank_in_group=src_rank_in_group, in_place=in_place)

    def gather(
        self,
        refs: Taken,
        *,
        dst_rank_in_group: int = 0,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        into: Named | None = None,
    ) -> Named:
        """Gives the destination the members' tensors, put together in group order; the others None.

        See ``Gang.gather``. What it gives as a list no step takes; it can be kept.
        """
        return self._does(
            "gather",
            refs,
            into,
            dst_rank_in_group=dst_rank_in_group,
            dim=dim,
            sizes=sizes,
            layout=layout,
            ragged=ragged,
        )

    def all_reduce(
        self, refs: Taken, *, op: ReduceOp = "sum", in_place: bool = False, into: Named | None = None
    ) -> Named:
        """Gives every member the element-wise reduction of all members' tensors. See ``Gang.all_reduce``."""
        return self._does("all_reduce", refs, into, op=op, in_place=in_place)

    def all_gather(
        self,
        refs: Taken,
        *,
        dim: int | None = None,
        sizes: Sequence[int] | None = None,
        layout: GatherLayout = "concatenated",
        ragged: bool = False,
        into: Named | None = None,
    ) -> Named:
        """Gives every member all members' tensors, put together in group order.

        See ``Gang.all_gather``. What it gives as a list no step takes; it can be kept.
        """
        return self._does("all_gather", refs, into, dim=dim, sizes=sizes, layout=layout, ragged=ragged)

    def reduce(
        self, refs: Taken, *, op: ReduceOp = "sum", dst_rank_in_group: int = 0, into: Named | None = None
    ) -> Named:
        """Gives the destination the element-wise reduction of all members' tensors; the others None.

        See ``Gang.reduce``.
        """
        return self._does("reduce", refs, into, op=op, dst_rank_in_group=dst_rank_in_group)

    def scatter(
        self,
        refs: Taken,
        *,
        src_rank_in_group: int = 0,
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        into: Named | None = None,
    ) -> Named:
        """Gives every member its part of the source's tensor, divided in group order. See ``Gang.scatter``."""
        return self._does("scatter", refs, into, src_rank_in_group=src_rank_in_group, dim=dim, sizes=sizes)

    def reduce_scatter(
        self,
        refs: Taken,
        *,
        op: ReduceOp = "sum",
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        into: Named | None = None,
    ) -> Named:
        """Gives every member its part of the element-wise reduction of all members' tensors, divided in group order.

        See ``Gang.reduce_scatter``.
        """
        return self._does("reduce_scatter", refs, into, op=op, dim=dim, sizes=sizes)

    def scan(
        self, refs: Taken, *, op: ReduceOp = "sum", exclusive: bool = False, into: Named | None = None
    ) -> Named:
        """Gives member m the element-wise reduction of the tensors of members 0 to m. See ``Gang.scan``."""
        return self._does("scan", refs, into, op=op, exclusive=exclusive)

    # --- end of CollectiveService

    def all_to_all(
        self,
        refs: Taken,
        *,
        dim: int = 0,
        sizes: Sequence[Sequence[int]] | None = None,
        input_sizes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None,
        into: Named | None = None,
    ) -> Named:
        """Gives every member its parts of all members' tensors. See ``Gang.all_to_all`` and ``Rank.all_to_all``.

        Args:
            refs: What is divided.
            dim: Dimension along which to divide and to concatenate.
            sizes: In a gang's program: what each member sends each.
            input_sizes: In a rank's program: what goes to each member.
            output_sizes: In a rank's program: what comes from each member.
            into: See the class.
        """
        return self._does(
            "all_to_all",
            refs,
            into,
            dim=dim,
            sizes=sizes,
            input_sizes=input_sizes,
            output_sizes=output_sizes,
        )

    def _does(self, operation: str, refs: Taken, into: Named | None, **options: Any) -> Named:
        # What is not given is not passed on: of all_to_all a gang and a rank take different sizes.
        own = {name: _copied(value) for name, value in options.items() if value is not None}
        given = self._takes(refs, operation)
        is_list = own.get("layout") == "list"
        if into is None:
            gives = Named(f"{operation}_{len(self._names) + 1}", operation, is_list)
        else:
            gives = self._own(into, operation)
            if gives.is_list is not is_list:
                raise InvalidArgumentError(
                    "a name stands for a tensor or for a list always",
                    operation=operation,
                    expected="a list" if gives.is_list else "a tensor",
                    got="a list" if is_list else "a tensor",
                )
        step = Step(operation=operation, given=given, options=own, gives=gives)
        first = given if self._first is None else self._first
        ops.check_step(step, len(first) if isinstance(first, tuple) else None)
        self._add(step)
        return gives


def _copied(value: Any) -> Any:
    """Gives an option that does not change with its caller's list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return tuple(_copied(item) for item in value)
