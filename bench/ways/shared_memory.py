"""Tensors by memory that a rank and its caller share."""

from __future__ import annotations

from bench.subject import Timed
from bench.ways import Stage
from bench.ways._transfers import transfers


def operations(stage: Stage) -> dict[str, Timed]:
    """Of one host."""
    return transfers(stage.connected(shared_memory=True), shared=True)
