# Written by scripts/unasync.py from _async/averaging.py: change that file, not this one.
"""Averages of gradients and models, blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, overload

from rankbridge._plan import compositions as compositions
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref
from rankbridge._sync.front import GangFront

__all__ = ["GangAveraging"]


class GangAveraging(GangFront):
    """How a ``Gang`` averages what its members train."""

    @overload
    def average(self, tensors: Sequence[Ref], **options: Unpack[CallOptions]) -> list[Ref]: ...
    @overload
    def average(
        self, tensors: Mapping[str, Sequence[Ref]], **options: Unpack[CallOptions]
    ) -> dict[str, list[Ref]]: ...
    @overload
    def average(
        self, tensors: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]: ...

    def average(
        self,
        tensors: Sequence[Ref] | Mapping[str, Sequence[Ref]] | Sequence[Mapping[str, Ref]],
        **options: Unpack[CallOptions],
    ) -> list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]]:
        """Averages tensors over the members of a group, in place: one coalesced `all_reduce` with "avg".

        As torchgfn's ``average_gradients`` and ``average_models``; but it divides by the group's size, where
        ``average_models`` divides by the world's, and either all tensors are averaged or none.

        Args:
            tensors: Refs, one of each member; or a map of names to such; or a map of names to refs of each member,
                in group order. Of floating-point or complex dtypes.
            **options: ``CallOptions``.

        Returns:
            The refs, in the form in which they were given.

        Raises:
            InvalidArgumentError: The members' maps have different names. No rank was asked.
            GangError: As of `coalesce`.
        """
        averaged: list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]] = self._carried_out(
            compositions.averaging(self, tensors, dict(options))
        )
        return averaged

    def average_gradients(
        self, gradients: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]:
        """Averages gradients, a map of names to refs of each member: `average` under torchgfn's name."""
        return self._carried_out(compositions.averaging(self, gradients, dict(options)))

    def average_models(
        self, parameters: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]:
        """Averages parameters, a map of names to refs of each member: `average` under torchgfn's name."""
        return self._carried_out(compositions.averaging(self, parameters, dict(options)))
