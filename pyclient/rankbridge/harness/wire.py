"""Values, tensors and errors as the driver writes and reads them in JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rankbridge import RankBridgeError, Ref, Tensor
from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.tensor import as_tensor
from rankbridge.harness import safetensors
from rankbridge.harness.fills import made
from rankbridge.harness.floats import decode

MOST_VALUES = 64
MOST_BASE64 = 1 << 20
_EXACT = 2**53


def as_json(value: Any) -> Any:
    """Gives a value as JSON has it: NaN, infinities and ints beyond 2**53 as texts, complex numbers as pairs."""
    match value:
        case bool() | None | str():
            return value
        case int():
            return value if abs(value) <= _EXACT else str(value)
        case float():
            return value if math.isfinite(value) else _special(value)
        case complex():
            return [as_json(value.real), as_json(value.imag)]
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case list() | tuple():
            return [as_json(it) for it in value]
        case dict():
            return {str(key): as_json(it) for key, it in value.items()}
        case Ref() | Tensor():
            return {"dtype": value.dtype, "shape": list(value.shape)}
        case np.ndarray() | np.generic():
            return as_json(value.tolist())
    return str(value)


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def error_as_json(error: RankBridgeError) -> dict[str, Any]:
    """Gives an error with the fields of ``rankbridge.v1.Error``, by their names there."""
    fields = ("phase", "rank", "group", "operation", "operation_id", "generation", "expected", "got")
    # What is not said of a rank is left out, but for the detail.
    details = [
        {name: value for name, value in asdict(it).items() if value not in ("", None) or name == "detail"}
        for it in error.ranks
    ]
    return {
        "code": str(error.code),
        "message": error.message,
        "indefinite": error.indefinite,
        **{name: it for name in fields if (it := getattr(error, name)) not in ("", None)},
        **({"raised": asdict(error.raised)} if error.raised is not None else {}),
        "ranks": details,
    }


def described_tensor(tensor: Tensor) -> dict[str, Any]:
    """Gives dtype, shape and, if they are few and of a dtype that JSON has, the elements of a tensor."""
    described: dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    if math.prod(tensor.shape) <= MOST_VALUES and not tensor.dtype.startswith("float8"):
        described["values"] = as_json(decode(tensor))
    return described


def tensor_as_json(
    tensor: Tensor, form: str, folder: Path | None, name: str, own: str = ""
) -> dict[str, Any]:
    """Gives a tensor.

    Args:
        tensor: The tensor.
        form: "values", "base64", "file" or "safetensors"; empty: values if they are few, else base64.
        folder: Where files are written.
        name: Name of the file, without its ending.
        own: Name of the tensor in a file that has names.

    Raises:
        ValueError: It is too large for its form, there is no folder, or numpy has not its dtype.
    """
    described: dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
    if form == "safetensors":
        path = _inside(folder, f"{name}{safetensors.SUFFIX}")
        safetensors.write(path, {own: tensor})
        return {**described, "file": path.name}
    if form == "file":
        path = _inside(folder, f"{name}.npy")
        array = tensor.view_uint() if DTYPES[tensor.dtype].numpy is None else tensor.numpy()
        np.save(path, array, allow_pickle=False)
        return {**described, "file": path.name}
    whole = described_tensor(tensor)
    if form == "values" or (not form and "values" in whole):
        if "values" not in whole:
            count = math.prod(tensor.shape)
            raise ValueError(f"{count} elements of {tensor.dtype} are no values; take base64 or a file")
        return whole
    if tensor.nbytes > MOST_BASE64:
        raise ValueError(f"{tensor.nbytes:,} bytes; as base64 at most {MOST_BASE64:,}; take a file")
    return {**described, "base64": base64.b64encode(tensor.data).decode()}


def tensor_of(given: Mapping[str, Any], rank: int, seed: int, folder: Path | None) -> Tensor:
    """Makes the tensor of a request: of a generator, values, base64, or a file.

    Raises:
        ValueError: It cannot be made.
        OSError: The file cannot be read.
    """
    if "file" in given:
        path = _inside(folder, given["file"])
        if path.suffix == safetensors.SUFFIX:
            return _of_dtype(path, safetensors.read(path, given.get("tensor")), given.get("dtype"))
        if "tensor" in given:
            raise ValueError(f"{path.name} has one tensor: `tensor` names one of a {safetensors.SUFFIX} file")
        return _of_file(path, given.get("dtype"))
    if "dtype" not in given or "shape" not in given:
        raise ValueError("a tensor that is in no file has `dtype` and `shape`")
    if "base64" in given:
        return Tensor(given["dtype"], given["shape"], base64.b64decode(given["base64"], validate=True))
    return made(given, rank, seed)


def _of_file(path: Path, dtype: str | None) -> Tensor:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path.name} is no .npy file of one array")
    if dtype is None or dtype == array.dtype.name:
        return as_tensor(np.ascontiguousarray(array))
    kind = DTYPES[dtype]
    if kind.numpy is not None or array.dtype.kind != "u" or array.dtype.itemsize != kind.itemsize:
        raise ValueError(f"{path.name} holds {array.dtype.name}, not {dtype}")
    return Tensor(dtype, array.shape, np.ascontiguousarray(array))


def _of_dtype(path: Path, tensor: Tensor, dtype: str | None) -> Tensor:
    if dtype not in (None, tensor.dtype):
        raise ValueError(f"{path.name} holds {tensor.dtype}, not {dtype}")
    return tensor


def _inside(folder: Path | None, name: str) -> Path:
    """Gives the path of a file in the folder."""
    if folder is None:
        raise ValueError("`open` has named no `folder` for files")
    if "/" in name or name in ("", ".", "..") or "\x00" in name:
        raise ValueError(f"a file is named without its folder: not {name!r}")
    return folder / name
