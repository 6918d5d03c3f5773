"""Tensors over gRPC alone."""

from __future__ import annotations

from bench.subject import Timed
from bench.ways import Stage
from bench.ways._transfers import transfers


def operations(stage: Stage) -> dict[str, Timed]:
    """Streams of chunks."""
    return transfers(stage.connected(shared_memory=False), shared=False)
