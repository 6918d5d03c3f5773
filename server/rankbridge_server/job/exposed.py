"""What the user's process shows of itself: tensors by name, and values as functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .registry import BUILT_IN, REGISTRY, Registry

if TYPE_CHECKING:
    import torch


class Exposed:
    """Modules, maps and tensors by the first part of their tensors' names. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: dict[str, object] = {}
        self._writable: set[str] = set()

    def add(self, name: str, thing: object, *, writable: bool) -> None:
        """Adds a thing, or puts another in its place."""
        with self._lock:
            self._things[name] = thing
            (self._writable.add if writable else self._writable.discard)(name)

    def find(self, pattern: str) -> Iterator[tuple[str, torch.Tensor]]:
        """Tensors whose names match a pattern of the shell's: "model.layers.*.weight"; by name, as they are now."""
        with self._lock:
            things = dict(self._things)
        for name, thing in sorted(things.items()):
            for own, tensor in _tensors(name, thing):
                if fnmatchcase(own, pattern):
                    yield own, tensor

    def is_writable(self, name: str) -> bool:
        """Whether controllers may change the tensor of that name."""
        with self._lock:
            return any(name == it or name.startswith(f"{it}.") for it in self._writable)


EXPOSED = Exposed()
"""That of this process."""


def expose(*, writable: bool = False, **things: object) -> None:
    """Shows things of this process to controllers, under their names.

    Controllers find the tensors (`gang.named("model.*")`), summarise and compare them on the ranks, and take copies of
    them as refs. They see them as they are in that moment, in the middle of a step too; the process does not wait.

    Args:
        writable: True: controllers may change the elements of these tensors, too.
        **things: A module, whose parameters and buffers are meant; a tensor; a map of names to tensors, nested as may
            be, as of ``state_dict()``; or a function, which controllers call: ``step=lambda: trainer.step``.

    Raises:
        TypeError: A thing is nothing of these.
    """
    for name, thing in things.items():
        if _is_module(thing) or isinstance(thing, Mapping) or _is_tensor(thing):
            EXPOSED.add(name, thing, writable=writable)
        elif callable(thing):
            REGISTRY.replace(name, thing)
        else:
            raise TypeError(f"{name}: a {type(thing).__name__} has no tensors, and cannot be called")


def built_in(exposed: Exposed = EXPOSED) -> dict[str, Callable[..., Any]]:
    """The functions by which clients reach what is exposed, by name."""

    def named(pattern: str) -> dict[str, Any]:
        return {name: _described(it, exposed.is_writable(name)) for name, it in exposed.find(pattern)}

    def summary(pattern: str) -> dict[str, Any]:
        from .summaries import summary_of

        return {name: asdict(summary_of(it)) for name, it in exposed.find(pattern)}

    def take(pattern: str) -> dict[str, Any]:
        return dict(exposed.find(pattern))

    def difference(one: Any, other: Any) -> dict[str, Any]:
        from .summaries import difference_of

        return asdict(difference_of(one, other))

    def write(name: str, value: Any) -> None:
        found = dict(exposed.find(name))
        if name not in found:
            raise LookupError(f"no tensor {name!r} is exposed")
        if not exposed.is_writable(name):
            raise PermissionError(f"{name!r} is exposed to be read: expose(..., writable=True)")
        if (value.dtype, value.shape) != (found[name].dtype, found[name].shape):
            raise ValueError(
                f"{name!r} is a {found[name].dtype} {list(found[name].shape)}, not a {value.dtype} {list(value.shape)}"
            )
        found[name].data.copy_(value)

    functions = (named, summary, take, difference, write)
    return {f"{BUILT_IN}{it.__name__}": it for it in functions}


def with_built_in(registry: Registry) -> Registry:
    """The registry, with those functions."""
    for name, function in built_in().items():
        registry.replace(name, function)
    return registry


def _described(tensor: torch.Tensor, writable: bool) -> dict[str, Any]:
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": tuple(tensor.shape),
        "device": str(tensor.device),
        "writable": writable,
    }


def _tensors(name: str, thing: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if _is_module(thing):
        yield from ((f"{name}.{own}", it) for own, it in thing.named_parameters())
        yield from ((f"{name}.{own}", it) for own, it in thing.named_buffers())
    elif _is_tensor(thing):
        yield name, thing
    elif isinstance(thing, Mapping):
        for own, it in thing.items():
            yield from _tensors(f"{name}.{own}", it)


def _is_tensor(thing: object) -> bool:
    import torch

    return isinstance(thing, torch.Tensor)


def _is_module(thing: object) -> bool:
    import torch

    return isinstance(thing, torch.nn.Module)
