"""Every operation by its name."""

from __future__ import annotations

from typing import Any

from ..functions import operations as functions
from ..groups import operations as groups
from ..programs import plan, replays
from ..queues import operations as queues
from . import (
    agreements,
    all_to_all,
    gathers,
    moves,
    objects,
    point_to_point,
    reductions,
    tensor_dicts,
    values,
)
from .operation import Operation

_MODULES = (
    *(agreements, moves, gathers, all_to_all, reductions, objects, values, tensor_dicts, point_to_point),
    *(groups, queues, plan, replays, functions),
)

OPERATIONS: dict[str, Operation[Any]] = {
    it.name: it for module in _MODULES for it in vars(module).values() if isinstance(it, Operation)
}
