# Written by scripts/unasync.py from _async/compat/torchgfn.py: change that file, not this one.
"""torchgfn's averages over a gang, blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref
from rankbridge._sync.gang import Gang


def average_gradients(
    gang: Gang, gradients: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
) -> list[dict[str, Ref]]:
    """Averages gradients, a map of names to refs of each member: see ``Gang.average``."""
    return gang.average(gradients, **options)


def average_models(
    gang: Gang, parameters: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
) -> list[dict[str, Ref]]:
    """Averages parameters, a map of names to refs of each member: see ``Gang.average``.

    It divides by the group's size, where torchgfn divides by the world's.
    """
    return gang.average(parameters, **options)
