"""The shared cases, as Python sees them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from rankbridge import Tensor

CASES = Path(__file__).parent / "cases"

Json = dict[str, Any]


def load() -> list[Json]:
    """All cases of all files."""
    return [case for path in sorted(CASES.glob("*.json")) for case in json.loads(path.read_text())]


def tensor(spec: Json) -> Tensor:
    """A tensor of a case."""
    return Tensor(spec["dtype"], tuple(spec["shape"]), base64.b64decode(spec["data"]))


def tensor_form(value: Tensor) -> Json:
    """A tensor as cases have it."""
    data = base64.b64encode(bytes(value.data)).decode()
    return {"dtype": value.dtype, "shape": list(value.shape), "data": data}
