"""Loading the user's functions into a rank."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.coordinator import Backend
from ..core.functions.functions import Functions
from ..job.loading import load
from ..job.registry import REGISTRY


def loaded(modules: Sequence[str], backend: Backend, hostname: str) -> Functions | None:
    """The functions of these modules, which it imports; None if there are no modules. Raises LoadError."""
    if not modules:
        return None
    load(modules)
    from ..job.exposed import with_built_in
    from ..job.host import FunctionHost

    world = None
    if backend.name in ("gloo", "nccl"):
        from ..job import points
        from ..job.interfaces import interface_of
        from ..job.torch_world import TorchWorld

        points.begin()
        world = TorchWorld(interface_of(hostname), "cuda" if backend.name == "nccl" else "cpu")
    return FunctionHost(with_built_in(REGISTRY), backend.tensors, world)
