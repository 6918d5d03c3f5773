"""Loading the user's functions into a rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.coordinator import Backend
from ..core.functions.functions import Functions
from ..core.hold.holds import Hook
from ..core.record.script_calls import ScriptCalls
from ..job.loading import load
from ..job.registry import REGISTRY


class Loaded(NamedTuple):
    """The user's code in a rank. `hook`: makes its collectives come to the rank's breakpoints.

    `record_calls`: makes them come to its record.
    """

    functions: Functions | None = None
    hook: Hook | None = None
    record_calls: Callable[[ScriptCalls], Callable[[], None]] | None = None


def loaded(modules: Sequence[str], backend: Backend, hostname: str) -> Loaded:
    """The functions of these modules, which it imports. Raises LoadError."""
    if not modules:
        return Loaded()
    load(modules)
    from ..job.exposed import with_built_in
    from ..job.host import FunctionHost

    registry = with_built_in(REGISTRY)
    if backend.name not in ("gloo", "nccl"):
        return Loaded(FunctionHost(registry, backend.tensors, None))
    from ..job import breakpoints, points, recorded_calls
    from ..job.interfaces import interface_of
    from ..job.torch_world import TorchWorld

    points.begin()
    world = TorchWorld(interface_of(hostname), "cuda" if backend.name == "nccl" else "cpu")
    return Loaded(FunctionHost(registry, backend.tensors, world), breakpoints.begin, recorded_calls.begin)
