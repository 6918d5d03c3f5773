"""The parameters of marked functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.job.signature import Signature


class Sized(Protocol):
    """For type checkers alone."""


def plain(value: Sized, other: int | str = 0) -> object:
    return value, other


def test_the_context_is_given_wherever_its_parameter_stands() -> None:
    def last(value: int, context: object) -> object:
        return value, context

    def first(context: object, value: int) -> object:
        return value, context

    for function in (last, first):
        signature = Signature("it", function)
        assert signature.call(signature.arguments([7], {}), "here") == (7, "here")


@pytest.mark.parametrize(
    ("positional", "named", "says"),
    [
        ([1, 2, 3.0], {}, "'other'|too many"),
        ([], {}, "missing a required argument: 'value'"),
        ([1], {"context": 1}, "unexpected keyword argument 'context'"),
        ([1], {"other": 1.5}, "argument 'other' is of another type"),
        ([1], {"other": True}, "argument 'other' is of another type"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_signature(
    positional: list[Any], named: dict[str, Any], says: str
) -> None:
    with pytest.raises(BridgeError, match=says) as failed:
        Signature("plain", plain).arguments(positional, named)
    assert failed.value.failure.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("value", [1, "x", None, [1]])
def test_a_protocol_for_type_checkers_accepts_everything(value: object) -> None:
    assert Signature("plain", plain).arguments([value], {}).args[0] == value


def _accepts(function: Callable[..., Any], **named: Any) -> bool:
    try:
        Signature("it", function).arguments([], named)
    except BridgeError:
        return False
    return True


@pytest.mark.parametrize(
    ("hint", "fits", "does_not"),
    [
        (int, [1, -(2**70)], [True, 1.0, "1", None]),
        (float, [1, 1.5], [True, "1.5", None]),
        (bool, [True], [1, None]),
        (str | None, ["", None], [1, b""]),
        (list[int], [[], ["what is inside is not looked at"]], [(1,), {}]),
        (Literal["a", 1], ["a", 1], ["b", 2]),
        (Annotated[bytes, "said"], [b""], ["text"]),
        (object, [None, 1], []),
        (Any, [None, 1], []),
    ],
    ids=str,
)
def test_plain_types_are_checked(hint: Any, fits: list[Any], does_not: list[Any]) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = hint
    assert all(_accepts(function, value=it) for it in fits)
    assert not any(_accepts(function, value=it) for it in does_not)
