# Written by scripts/unasync.py from _async/coordinator.py: change that file, not this one.
"""What vLLM's ``GroupCoordinator`` has names for, blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, overload

from rankbridge._plan import compositions as compositions
from rankbridge._plan import operations as ops
from rankbridge._plan.gang_core import of_gang
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions, MemberOptions
from rankbridge._plan.ref import Ref
from rankbridge._sync.front import GangFront

__all__ = ["GangCoordinator"]


class GangCoordinator(GangFront):
    """The names of vLLM's ``GroupCoordinator`` on a ``Gang``; the group is an option, "world" if not given.

    ``**options`` are ``CallOptions``, and what fails is told, as for the collectives that these are made of.
    """

    @overload
    def all_gatherv(
        self,
        input_: Sequence[Ref],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]: ...
    @overload
    def all_gatherv(
        self,
        input_: Sequence[Sequence[Ref]],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[list[Ref]]: ...

    def all_gatherv(
        self,
        input_: Sequence[Ref] | Sequence[Sequence[Ref]],
        dim: int = 0,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Any]:
        """Gives every member all members' tensors, concatenated: `all_gather`, of one input or of several at once.

        Unlike vLLM's, along every dimension, and on CPU ranks too.

        Args:
            input_: Refs, one of each member, or a list of such: these are coalesced.
            dim: Dimension along which to concatenate.
            sizes: Size of each member's tensors along `dim`, in group order. None: all are alike.
            **options: See the class.

        Returns:
            A ref for each member, or for each input a list of these.
        """
        if len(input_) and isinstance(input_[0], Ref):
            return self._called("all_gather", input_, dim=dim, sizes=sizes, **options)
        gather = {"dim": dim, "sizes": sizes}
        return self._carried_out(
            compositions.gathering_each(self, input_, gather, dict(options))  # type: ignore[arg-type]
        )

    def reduce_scatterv(
        self,
        input_: Sequence[Ref],
        dim: int = -1,
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member its part of the sum of all members' tensors: `reduce_scatter`.

        Args:
            input_: One ref of each member, in group order.
            dim: Dimension along which to divide.
            sizes: Size of each member's part along `dim`, in group order. None: equal parts.
            **options: See the class.
        """
        return self._called("reduce_scatter", input_, dim=dim, sizes=sizes, **options)

    @overload
    def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> tuple[list[Ref], list[Ref]]: ...
    @overload
    def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        *,
        extra_tensors: Sequence[Sequence[Ref]],
        **options: Unpack[CallOptions],
    ) -> tuple[list[Ref], list[Ref], list[list[Ref]]]: ...

    def dispatch(
        self,
        hidden_states: Sequence[Ref],
        router_logits: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        *,
        extra_tensors: Sequence[Sequence[Ref]] = (),
        **options: Unpack[CallOptions],
    ) -> Any:
        """Gives every member all members' tokens, and what goes with them: a coalesced `all_gather` along dimension 0.

        As vLLM's ``dispatch`` with its manager that gathers and scatters.

        Args:
            hidden_states: One ref of each member: its tokens, a row each.
            router_logits: One ref of each member: a row for each token.
            sizes: How many tokens each member has, in group order. None: equally many.
            extra_tensors: More lists of refs, with a row for each token.
            **options: See the class.

        Returns:
            Refs of all tokens and of all logits, for each member; and if there are extra tensors, a list of theirs.
        """
        return self._carried_out(
            compositions.dispatching(self, hidden_states, router_logits, sizes, extra_tensors, dict(options))
        )

    def combine(
        self,
        hidden_states: Sequence[Ref],
        sizes: Sequence[int] | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Ref]:
        """Gives every member the sum of all members' results for its own tokens: `reduce_scatter` along dimension 0.

        Args:
            hidden_states: One ref of each member: its results for all tokens, a row each.
            sizes: How many tokens each member has, in group order. None: equally many.
            **options: See the class.
        """
        return self._called("reduce_scatter", hidden_states, dim=0, sizes=sizes, **options)

    def _all_reduce_out_place(self, input_: Sequence[Ref], **options: Unpack[CallOptions]) -> list[Ref]:
        """Gives every member the sum of all members' tensors in a new one: `all_reduce`."""
        return self._called("all_reduce", input_, **options)

    def _all_gather_out_place(
        self, input_: Sequence[Ref], dim: int, **options: Unpack[CallOptions]
    ) -> list[Ref]:
        """Gives every member all members' tensors, concatenated along `dim`: `all_gather`."""
        return self._called("all_gather", input_, dim=dim, **options)

    def _reduce_scatter_out_place(
        self, input_: Sequence[Ref], dim: int, **options: Unpack[CallOptions]
    ) -> list[Ref]:
        """Gives every member its part, along `dim`, of the sum of all members' tensors: `reduce_scatter`."""
        return self._called("reduce_scatter", input_, dim=dim, **options)

    def destroy(self, group: str | Group, **options: Unpack[MemberOptions]) -> Group:
        """Ends a group, after the calls queued on it, and gives it as it was: `destroy_group`."""
        members = self._members(group)
        calls = self._on_members(members, ops.destroy_group, group, **options)
        return of_gang((self._channels.run_all(calls))[0])

    def prepare_communication_buffer_for_model(
        self, description: Sequence[Mapping[str, Any]], *, group: str | Group = "world", device: str = ""
    ) -> list[dict[str, Ref]]:
        """Makes on each member a buffer for each dtype of a model, as large as its largest parameter of that.

        vLLM takes the module itself, and prepares what its kernels for experts need.

        Args:
            description: Of each parameter a map of "name", "shape" and "dtype".
            group: Whose members get them.
            device: "cpu", "cuda:0". Empty: each rank's own.

        Returns:
            For each member, in group order, a ref by the dtype's name, on a tensor of one dimension, all zeros.

        Raises:
            InvalidArgumentError: A description is not of a parameter. No rank was asked.
            GangError: A buffer could not be made; those that were are released again.
        """
        return self._carried_out(compositions.preparing_buffers(self, description, group, device))
