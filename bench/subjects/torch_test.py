"""A test of torch's own harness: two processes that are spawned for it, and one all_reduce. Measured with expecttest."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from bench.subject import Ways, serve, timed

try:
    from torch.testing._internal.common_distributed import MultiProcessTestCase
except ImportError:
    # The processes that it spawns import this module, too; `started` says what is missing.
    MultiProcessTestCase = object

_SIZE = 2


class OneAllReduce(MultiProcessTestCase):  # type: ignore[misc, unused-ignore]
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
        self.assertEqual(tensor.item(), _SIZE)
        dist.destroy_process_group()


def _run() -> None:
    result = unittest.TestResult()
    OneAllReduce("test_sum").run(result)
    if not result.wasSuccessful():
        raise RuntimeError(str(result.failures or result.errors))


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Nothing is started: the number of ranks makes no difference."""
    import expecttest  # noqa: F401

    yield Ways({"torch": torch.__version__}, {"processes": {"own_gang": timed(_run)}}, {})


if __name__ == "__main__":
    serve(started)
