"""A test of torch's own harness: two processes, spawned for it, and one all_reduce. It needs the package expecttest."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from bench.subject import NotThere, Ways, serve, timed

try:
    from torch.testing._internal import common_distributed as internal
except ImportError as error:
    _lack = str(error)
    _base: type = object
else:
    _lack, _base = "", internal.MultiProcessTestCase

_SIZE = 2


class OneAllReduce(_base):  # type: ignore[misc]
    """The test."""

    @property
    def world_size(self) -> int:
        """Processes."""
        return _SIZE

    def setUp(self) -> None:
        """Spawns them."""
        super().setUp()
        self._spawn_processes()

    def test_sum(self) -> None:
        """Runs in each process."""
        dist.init_process_group(
            "gloo", init_method=f"file://{self.file_name}", rank=self.rank, world_size=_SIZE
        )
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == _SIZE
        dist.destroy_process_group()


def _run() -> None:
    result = unittest.TestResult()
    OneAllReduce("test_sum").run(result)
    if not result.wasSuccessful():
        raise RuntimeError(str(result.failures or result.errors))


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Nothing is started: the number of ranks makes no difference."""
    if _lack:
        raise NotThere(_lack)
    yield Ways({"torch": torch.__version__}, {"processes": {"own_gang": timed(_run)}}, {})


if __name__ == "__main__":
    serve(started)
