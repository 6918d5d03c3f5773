"""Tensors of a job by name: parameters and buffers of modules, entries of state dicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

_PREFIX = re.compile(r"[\w-]+")
_DEPTH = 32


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor that a job has named. `writable`: controllers may change it."""

    name: str
    tensor: torch.Tensor
    writable: bool

    @property
    def dtype(self) -> str:
        """Its dtype: "bfloat16"."""
        return str(self.tensor.dtype).removeprefix("torch.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape; of a DTensor, the shape of the whole."""
        return tuple(self.tensor.shape)

    @property
    def device(self) -> str:
        """Its device: "cuda:0"."""
        return str(self.tensor.device)


class NamedTensors:
    """What a job has named. Thread-safe; each call looks the names up again, because a job may replace its tensors."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[Any, bool]] = {}
        self._otherwise: Callable[[], Mapping[str, Any]] = dict

    def expose(self, name: str, source: object, *, writable: bool = False) -> None:
        """Names the tensors of a module, a mapping, a list or a tuple, or a tensor, below `name`.

        A name that is there gets the new source. Raises ValueError for a name that is no word, TypeError for a source
        of another kind.
        """
        if not _PREFIX.fullmatch(name):
            raise ValueError(f"a name is letters, digits, '_' and '-', not {name!r}")
        if not isinstance(source, torch.Tensor | nn.Module | Mapping | list | tuple):
            raise TypeError(
                f"a module, a mapping, a list or a tensor is exposed as {name!r}, not a {type(source).__name__}"
            )
        self._sources = {**self._sources, name: (source, writable)}

    def otherwise(self, find: Callable[[], Mapping[str, object]]) -> None:
        """As long as nothing is named, shows what `find` gives by name, to be read."""
        self._otherwise = find

    def forget(self, name: str) -> None:
        """Forgets what was exposed under `name`."""
        self._sources = {it: source for it, source in self._sources.items() if it != name}

    def find(self, pattern: str = "*") -> list[NamedTensor]:
        """The tensors whose names match: "*" any text, dots too; "?" a character; "[ab]" one of these. In order.

        A parameter that two modules share has both names.
        """
        sources = self._sources or {name: (source, False) for name, source in self._otherwise().items()}
        return [
            NamedTensor(name, tensor, writable)
            for prefix, (source, writable) in sources.items()
            for name, tensor in _walk(prefix, source, 0)
            if fnmatchcase(name, pattern)
        ]

    def get(self, name: str) -> NamedTensor:
        """The tensor of a name. Raises KeyError, with names that are like it."""
        for found in self.find():
            if found.name == name:
                return found
        last = name.rpartition(".")[2]
        like = [it.name for it in self.find() if it.name.endswith(last)] or [it.name for it in self.find()]
        raise KeyError(f"no tensor is named {name!r}; there are {', '.join(like[:5]) or 'none'}")


def _walk(name: str, source: object, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(source, torch.Tensor):
        yield name, source
    elif isinstance(source, nn.Module):
        for tensors in (source.named_parameters, source.named_buffers):
            for below, tensor in tensors(remove_duplicate=False):
                yield f"{name}.{below}", tensor
    elif depth < _DEPTH and isinstance(source, Mapping | list | tuple):
        # A copy, which nothing can interrupt: the job may be changing it.
        entries = source.copy().items() if isinstance(source, dict) else _entries(source)
        for key, value in entries:
            yield from _walk(f"{name}.{key}", value, depth + 1)


def _entries(source: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    if isinstance(source, Mapping):
        return iter(list(source.items()))
    return iter(list(enumerate(source)))
