"""Small messages of a guarded job, which travel with what announces them."""

import pytest
import torch

from rankbridge_server.job.guard.carried import CarriedWork, content_of, fill, is_carried


@pytest.mark.parametrize(
    ("count", "dtype", "small"),
    [
        (512, torch.float32, True),
        (513, torch.float32, False),
        (256, torch.float64, True),
        (0, torch.bool, True),
    ],
)
def test_what_is_small_is_carried(count: int, dtype: torch.dtype, small: bool) -> None:
    assert is_carried(torch.zeros(count, dtype=dtype)) is small


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_what_is_carried_arrives_as_it_is(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    sent = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)
    got = torch.zeros(shape, dtype=dtype)
    fill(got, content_of(sent))
    assert torch.equal(got, sent)


def test_what_has_another_size_changes_nothing() -> None:
    got = torch.zeros(2)
    with pytest.raises(ValueError, match="12 bytes came for a tensor of 8"):
        fill(got, bytes(range(12)))
    assert got.tolist() == [0, 0]


def test_it_is_done_and_a_receive_says_from_whom() -> None:
    received, sent = CarriedWork(3), CarriedWork(None)
    for work in (received, sent):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
    assert received._source_rank() == 3
    with pytest.raises(RuntimeError, match="no source"):
        sent._source_rank()
