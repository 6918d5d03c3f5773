"""The ways of the Python client: each is a module here, with `operations(stage)`, or is not there yet."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy

import rankbridge
from bench.operation import BY_NAME
from bench.subject import Timed, Ways
from rankbridge import Gang, Ref

NAMES = ("ranks", "gang", "stream", "program", "grpc", "shared_memory")
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Stage:
    """What the ways are measured on.

    Attributes:
        endpoints: Of the gang.
        gang: Connected to it.
        stack: Closes what a way has opened.
    """

    endpoints: Path
    gang: Gang
    stack: ExitStack

    @cached_property
    def refs(self) -> dict[str, list[Ref]]:
        """A tensor of each rank for each collective."""
        return {
            name: self.gang.create("float32", BY_NAME[name].nbytes // _FLOAT_BYTES)
            for name in ("all_reduce_4B", "all_reduce_4MB", "broadcast_4MB")
        }

    def connected(self, *, shared_memory: bool) -> Gang:
        """One more connection to the gang."""
        return self.stack.enter_context(
            rankbridge.connect(self.endpoints, shared_memory=shared_memory, timeout=120)
        )


def ways(stage: Stage) -> Ways:
    """Every way that is there."""
    timed: dict[str, dict[str, Timed]] = {}
    missing = {}
    for name in NAMES:
        if find_spec(f"bench.ways.{name}") is None:
            missing[name] = "the Python client has no such way yet"
        else:
            timed[name] = importlib.import_module(f"bench.ways.{name}").operations(stage)
    return Ways({"rankbridge": rankbridge_version(), "numpy": numpy.__version__}, timed, missing)


def rankbridge_version() -> str:
    """As it is installed."""
    from importlib.metadata import version

    return version("rankbridge")
