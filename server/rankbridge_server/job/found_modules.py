"""The modules of a job that names none: the variables of its script, and what DistributedDataParallel wraps."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle


class FoundModules:
    """The modules of this process. Thread-safe; they are looked for when somebody asks, and kept for nobody."""

    def __init__(self) -> None:
        self._wrapped: list[weakref.ref[nn.Module]] = []

    def watch(self) -> RemovableHandle:
        """Notes from now on what DistributedDataParallel wraps, until the hook is removed."""
        return register_module_module_registration_hook(self._registered)

    def _registered(self, module: nn.Module, name: str, submodule: nn.Module | None) -> None:
        if name == "module" and submodule is not None and isinstance(module, DistributedDataParallel):
            self._wrapped.append(weakref.ref(submodule))

    def by_name(self) -> Mapping[str, nn.Module]:
        """The outermost modules, each once: of its variable's name, else of its class's, with _1 and so on after it.

        Variables are those of `__main__`, but for names with a leading underscore. What DistributedDataParallel and
        torch.compile put around a module is left out.
        """
        found = {
            name: _inside(it)
            for name, it in vars(sys.modules["__main__"]).copy().items()
            if isinstance(it, nn.Module) and not name.startswith("_")
        }
        for it in [_inside(it) for reference in self._wrapped if (it := reference()) is not None]:
            if all(it is not other for other in found.values()):
                found[_free(type(it).__name__, found)] = it
        parts = {id(part) for it in found.values() for part in it.modules() if part is not it}
        whole = {id(it): name for name, it in reversed(found.items()) if id(it) not in parts}
        return {name: it for name, it in found.items() if whole.get(id(it)) == name}


FOUND = FoundModules()
"""Those of this process."""


def _inside(module: nn.Module) -> nn.Module:
    """The module that others are wrapped around."""
    while True:
        if isinstance(module, DistributedDataParallel):
            module = module.module
        elif "_orig_mod" in module._modules:
            module = module.get_submodule("_orig_mod")
        else:
            return module


def _free(name: str, taken: Mapping[str, object]) -> str:
    """The name, or with a number after it the first that is not taken."""
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
