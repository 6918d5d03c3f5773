"""What one member sends to another: `from` and `to` are ranks in the group, `result` what the receiver is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.contract.families.build import Json, case, noise, tensor
from tests.contract.families.objects import VALUES, WEIGHTS, text

SENT = tensor("float32", [2, 3], noise("sent", "float32", [2, 3]))


def messages() -> Iterator[Json]:
    """Each kind, between members of any place, with tags and from any."""
    for source, target in ((0, 1), (1, 0), (3, 2), (2, 3)):
        yield message(f"send from {source} to {target}", "send", {"ref": SENT}, source, target)
    for dtype, shape in (("complex128", []), ("float8_e4m3fn", [5]), ("bool", [2, 2]), ("uint64", [0, 3])):
        it = {"ref": tensor(dtype, shape, noise(f"{dtype}{shape}", dtype, shape))}
        yield message(f"send of {dtype}{shape}", "send", it, 1, 3)
    yield message("send with a tag", "send", {"ref": SENT}, 0, 2, tag=4_000_000_000)
    yield message("send to who takes from any", "send", {"ref": SENT}, 2, 0, any_source=True)
    yield message("send of what is expected", "send", {"ref": SENT}, 2, 0, expected=["float32", [2, 3]])
    for name in ("nested", "none", "no bytes", "bytes", "a large negative int"):
        yield message(f"send_object of {name}", "send_object", VALUES[name], 3, 1)
    yield message("send_object to who takes from any", "send_object", text("hello"), 1, 2, any_source=True)
    yield message("send_tensor_dict", "send_tensor_dict", WEIGHTS, 0, 3)
    yield message(
        "send_tensor_dict with a tag, to any", "send_tensor_dict", WEIGHTS, 3, 0, tag=1, any_source=True
    )
    yield message("send in a group in its own order", "send", {"ref": SENT}, 0, 1, group=[3, 1])
    for expected in (["float64", [2, 3]], ["float32", [3, 2]]):
        yield message(
            f"send of what is not expected: {expected}",
            "send",
            {"ref": SENT},
            2,
            0,
            expected=expected,
            error="MISMATCH",
        )
    yield message(
        "send to who receives an object", "send", {"ref": SENT}, 2, 0, receive="recv_object", error="MISMATCH"
    )
    yield message(
        "send_object to who receives a tensor dict",
        "send_object",
        VALUES["an empty map"],
        1,
        0,
        receive="recv_tensor_dict",
        error="MISMATCH",
    )


def message(
    name: str,
    send: str,
    value: Json,
    source: int,
    target: int,
    *,
    receive: str = "",
    any_source: bool = False,
    tag: int = 0,
    expected: Sequence[object] | None = None,
    **fields: object,
) -> Json:
    """One message; it arrives as it was sent, unless there is an `error`."""
    return case(
        name,
        send,
        **{
            "receive": receive or send.replace("send", "recv"),
            "from": source,
            "to": target,
            "any_source": any_source,
            "tag": tag,
            "expected": expected,
            "value": value,
            **fields,
        },
    )
