"""What a receive expects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from rankbridge._plan.dtypes import dtype_of
from rankbridge._plan.ref import Ref, spec_to_wire
from rankbridge._plan.tensor import checked_shape
from rankbridge.errors import InvalidArgumentError

Expected: TypeAlias = "Ref | tuple[object, Iterable[int] | int]"
"""What a receive expects: a ref that takes what comes, or dtype and shape."""


def fields_of_expected(expected: object) -> dict[str, Any]:
    """Gives the fields of a request that say what is expected, none for None.

    Raises:
        InvalidArgumentError: It is nothing that a receive can expect.
    """
    if expected is None:
        return {}
    if isinstance(expected, Ref):
        return {"ref_id": expected.id}
    if not (isinstance(expected, tuple) and len(expected) == 2):
        raise InvalidArgumentError(
            "not what a receive can expect",
            operation="recv",
            expected="a ref, or a pair of dtype and shape",
            got=repr(expected),
        )
    dtype, shape = expected
    return {"tensor": spec_to_wire(dtype_of(dtype).name, checked_shape(shape))}
