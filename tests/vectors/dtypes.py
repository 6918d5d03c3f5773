"""What torch makes of numbers in each dtype: the lines of `dtypes.jsonl`.

`values` (plain form) become the bytes `b64`; the bytes read back are `decoded`. They differ where a dtype
rounds. Complex numbers are pairs `[real, imaginary]`.
"""

import base64
import random
import struct
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from tests.vectors.plain import Plain, float_to_plain

SEED = 20260102

INTEGERS = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": -8,
    "uint16": -16,
    "uint32": -32,
    "uint64": -64,
}
"""Bits of the integer dtypes, negative for unsigned ones."""

FLOATS = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]

COMPLEX = ["complex32", "complex64", "complex128"]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e-300]
EDGES = [
    *(2.0**power for power in [*range(-150, -120), *range(-28, 18), *range(120, 129)]),
    *(1.5 * 2.0**power for power in range(-28, 18)),
    *(1.75 * 2.0**power for power in range(-20, 17, 4)),
    *(1.0 + step / 32 for step in range(32)),
    *(2.0**-8 * step / 16 for step in range(64)),
    *(2.0**-24 * step / 4 for step in range(16)),
    65504.0,
    65519.9,
    65520.0,
    448.0,
    464.0,
    465.0,
    480.0,
    57344.0,
    61440.0,
    240.0,
    248.0,
    249.0,
    3.4028235e38,
    3.4028236e38,
]


def lines() -> Iterator[dict[str, Any]]:
    """One line or two for each dtype."""
    rng = random.Random(SEED)
    for name, bits in INTEGERS.items():
        low, high = (0, 2**-bits - 1) if bits < 0 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        yield _line(name, [low, high, 0, 1, *(rng.randint(low, high) for _ in range(16))])
    yield _line("bool", [True, False, False, True])
    for name in FLOATS:
        drawn = [struct.unpack("<f", rng.randbytes(4))[0] for _ in range(24)]
        yield _line(name, [*SPECIAL, *EDGES, *(value for value in drawn if value == value)])
        if name.startswith("float8"):
            yield _every_byte(name)
    for name in COMPLEX:
        yield _line(name, [complex(a, b) for a, b in [(0.0, 0.0), (1.5, -2.25), (-0.0, 1e-3), (3.0, 4.0)]])


def _line(name: str, values: list[Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="ComplexHalf support is experimental")
        tensor = torch.tensor(values, dtype=getattr(torch, name))
    return {"dtype": name, "values": [_plain(value) for value in values], **_encoded(tensor)}


def _every_byte(name: str) -> dict[str, Any]:
    tensor = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(getattr(torch, name))
    return {"dtype": name, **_encoded(tensor)}


def _encoded(tensor: torch.Tensor) -> dict[str, Any]:
    data = tensor.view(torch.uint8).numpy().tobytes()
    readable = tensor.to(torch.float64) if tensor.dtype.is_floating_point else tensor
    readable = readable.to(torch.complex128) if tensor.dtype.is_complex else readable
    return {
        "b64": base64.b64encode(data).decode(),
        "decoded": [_plain(value) for value in readable.tolist()],
    }


def _plain(value: Any) -> Plain:
    if isinstance(value, complex):
        return [float_to_plain(value.real), float_to_plain(value.imag)]
    return float_to_plain(value) if isinstance(value, float) else value
