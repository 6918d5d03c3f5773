"""What the elements of a tensor made on its rank are."""

from __future__ import annotations

from dataclasses import dataclass

from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import ref_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Init:
    """A description of elements; made by `zeros`, `full`, `arange`, `uniform` or `normal`."""

    kind: str
    message: pb.Zeros | pb.Full | pb.Arange | pb.Uniform | pb.Normal


def zeros() -> Init:
    """Every element 0."""
    return Init("zeros", pb.Zeros())


def full(value: float) -> Init:
    """Every element the same.

    Args:
        value: bool for bool tensors, int (of at most 64 bits, signed) for integer ones, int or float for the
            rest.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    match value:
        case bool():
            return Init("full", pb.Full(bool=value))
        case int() if -(2**63) <= value < 2**63:
            return Init("full", pb.Full(int=value))
        case float():
            return Init("full", pb.Full(float=value))
    raise InvalidArgumentError(
        "no such element", expected="a bool, an int of at most 64 bits, or a float", got=repr(value)
    )


def arange(start: float = 0, step: float = 1) -> Init:
    """Element i, counted in row-major order, is ``start + i * step``. Not for bool and complex dtypes.

    Raises:
        InvalidArgumentError: The step is 0; that is `full`.
    """
    if step == 0:
        raise InvalidArgumentError("the step of arange is not 0", got="0")
    return Init("arange", pb.Arange(start=start, step=step))


def uniform(seed: int, low: float = 0, high: float = 1) -> Init:
    """Uniformly distributed elements, `low` included, `high` not. Floating-point dtypes only.

    The generator is torch's CPU generator with this seed (0 to 2**64 - 1): equal on every machine.

    Raises:
        InvalidArgumentError: `low` is not below `high`, or the seed is out of range.
    """
    if not low < high:
        raise InvalidArgumentError("low is not below high", expected=f"more than {low}", got=str(high))
    return Init("uniform", pb.Uniform(seed=_seed(seed), low=low, high=high))


def normal(seed: int, mean: float = 0, std: float = 1) -> Init:
    """Normally distributed elements. Floating-point dtypes only.

    The generator is torch's CPU generator with this seed (0 to 2**64 - 1): equal on every machine.

    Raises:
        InvalidArgumentError: `std` is negative, or the seed is out of range.
    """
    if not std >= 0:
        raise InvalidArgumentError("a standard deviation is 0 or more", got=str(std))
    return Init("normal", pb.Normal(seed=_seed(seed), mean=mean, std=std))


def fill(request: pb.CreateTensorRequest, init: Init) -> None:
    """Writes the description into a request."""
    getattr(request, init.kind).CopyFrom(init.message)
    # An empty message (zeros) is not set by a copy of nothing.
    getattr(request, init.kind).SetInParent()


def _seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise InvalidArgumentError("a seed has 64 bits", expected="0 to 2**64 - 1", got=str(seed))
    return seed
