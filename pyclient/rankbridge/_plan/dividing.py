"""How a gradient is divided before and after its reduction. Pure: asks no rank."""

from __future__ import annotations

from rankbridge.errors import InvalidArgumentError


def get_reduce_divide_factor(world_size: int) -> float:
    """Gives the factor by which gradients are divided before they are added up, as OLMo-core and FSDP do.

    After the sum they are divided by ``world_size / factor``: about the square root each, so that neither the parts
    underflow nor the sum overflows in a narrow dtype. The factor is a power of two: the first that does not divide
    `world_size`, or whose square is not below it.

    Args:
        world_size: Number of members, 1 or more.

    Raises:
        InvalidArgumentError: Less than one.
    """
    if world_size < 1:
        raise InvalidArgumentError(
            "no group is that small",
            operation="get_reduce_divide_factor",
            expected="1 or more",
            got=str(world_size),
        )
    power = 0
    while world_size % 2**power == 0 and 4**power < world_size:
        power += 1
    return float(2**power)
