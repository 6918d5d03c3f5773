"""What is seen of a job: groups that look like those of well-known libraries, and its hosts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from rankbridge_server.job.torch_job import NotAGroup, default_group_exists, local_rank, ranks_of


def test_ranks_are_a_list_or_an_attribute_of_a_coordinator() -> None:
    assert ranks_of([3, 1]) == (3, 1)
    assert ranks_of(SimpleNamespace(ranks=[0, 2], unique_name="tp:0")) == (0, 2)


@pytest.mark.parametrize("thing", [None, [], "01", [True, False], SimpleNamespace(ranks=None), {0, 1}])
def test_what_is_no_group_is_refused(thing: object) -> None:
    with pytest.raises(NotAGroup, match="is no group"):
        ranks_of(thing)


def test_a_process_group_may_be_an_attribute_as_a_mesh_collective_has_one() -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    try:
        assert default_group_exists()
        pair = dist.new_group([1, 3])
        assert ranks_of(pair) == (1, 3)
        assert ranks_of(SimpleNamespace(process_group=pair)) == (1, 3)
        assert ranks_of(SimpleNamespace(device_group=pair, cpu_group=None)) == (1, 3)
    finally:
        dist.destroy_process_group()
    assert not default_group_exists()


def test_a_rank_has_a_place_on_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert local_rank(["a", "b", "a", "a"], 2) == (1, 3)
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert local_rank(["a", "b", "a", "a"], 2) == (0, 3)
    monkeypatch.setenv("LOCAL_RANK", "7")
    assert local_rank(["a", "b", "a", "a"], 2) == (1, 3)
