"""What the user's process shows of itself: tensors by name, values as functions, groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch

from ..backends.summaries import NoSummary, difference_of, local, summarize
from . import attaching
from .named import NamedTensors
from .registry import BUILT_IN, REGISTRY, Registry

EXPOSED = NamedTensors()
"""The named tensors of this process."""


def expose(*, groups: Mapping[str, object] | None = None, writable: bool = False, **things: object) -> None:
    """Shows things of this process to controllers, under their names.

    Controllers find the tensors (`gang.named("model.*")`), summarise and compare them on the ranks, and take copies of
    them as refs. They see them as they are in that moment, in the middle of a step too; the process does not wait.

    Args:
        groups: In an attached job, groups by name: a ProcessGroup, a list of ranks of the job, or an object that has
            either, as vLLM's GroupCoordinator or optimus-dl's MeshCollective. All ranks call it, with the groups that
            each belongs to. A group to which the job has given no name has this one alone, if it was not found before.
        writable: True: controllers may change the elements of these tensors, too.
        **things: A module, whose parameters and buffers are meant; a tensor; a map, a list or a tuple of them, nested
            as may be, as of ``state_dict()``; or a function, which controllers call: ``step=lambda: trainer.step``.

    Raises:
        TypeError: A thing is nothing of these.
        AttachError: There are groups, and the process is not attached.
        NotAGroup: In one of them no group can be found.
    """
    for name, thing in things.items():
        if callable(thing) and not isinstance(thing, torch.nn.Module):
            REGISTRY.replace(name, thing)
        else:
            EXPOSED.expose(name, thing, writable=writable)
    if groups:
        attaching.expose_groups(groups)


def with_built_in(registry: Registry, exposed: NamedTensors = EXPOSED) -> Registry:
    """The registry, with the functions by which clients reach what is exposed."""

    def named(pattern: str) -> dict[str, Any]:
        return {
            it.name: {"dtype": it.dtype, "shape": it.shape, "device": it.device, "writable": it.writable}
            for it in exposed.find(pattern)
        }

    def summary(pattern: str) -> dict[str, Any]:
        return {it.name: _summary(it.tensor) for it in exposed.find(pattern)}

    def take(pattern: str) -> dict[str, Any]:
        return {it.name: local(it.tensor) for it in exposed.find(pattern)}

    def difference(one: torch.Tensor, other: torch.Tensor) -> dict[str, Any]:
        return asdict(difference_of(one, other))

    def write(name: str, value: torch.Tensor) -> None:
        found = exposed.get(name)
        if not found.writable:
            raise PermissionError(f"{name!r} is exposed to be read: expose(..., writable=True)")
        if (value.dtype, value.shape) != (found.tensor.dtype, found.tensor.shape):
            got = f"{value.dtype} {list(value.shape)}"
            raise ValueError(f"{name!r} is a {found.dtype} {list(found.shape)}, not a {got}")
        found.tensor.data.copy_(value)

    functions: tuple[Callable[..., Any], ...] = (named, summary, take, difference, write)
    for it in functions:
        registry.replace(f"{BUILT_IN}{it.__name__}", it)
    return registry


def _summary(tensor: torch.Tensor) -> dict[str, Any]:
    device = str(tensor.device)
    try:
        it = summarize(tensor)
    except NoSummary:
        # Of a tensor without elements that could be read there is nothing to compare.
        dtype = str(tensor.dtype).removeprefix("torch.")
        nothing = dict.fromkeys(("norm", "min", "max", "mean"))
        return {
            "dtype": dtype,
            "shape": tuple(tensor.shape),
            "device": device,
            **nothing,
            "nans": 0,
            "infs": 0,
            "hash": "",
        }
    return {
        "dtype": it.dtype,
        "shape": it.shape,
        "device": device,
        "norm": it.norm if it.least is not None else None,
        "min": None if it.least is None else float(it.least),
        "max": None if it.most is None else float(it.most),
        "mean": it.mean,
        "nans": it.nans,
        "infs": it.infs,
        "hash": it.digest,
    }
