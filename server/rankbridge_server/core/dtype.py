"""Element types of tensors."""

from __future__ import annotations

from enum import Enum


class Dtype(Enum):
    """Element type, named as torch names it. The value is the element's size in bytes and its kind."""

    FLOAT32 = ("float32", 4, "float")
    FLOAT64 = ("float64", 8, "float")
    FLOAT16 = ("float16", 2, "float")
    BFLOAT16 = ("bfloat16", 2, "float")
    INT8 = ("int8", 1, "int")
    INT16 = ("int16", 2, "int")
    INT32 = ("int32", 4, "int")
    INT64 = ("int64", 8, "int")
    UINT8 = ("uint8", 1, "int")
    UINT16 = ("uint16", 2, "int")
    UINT32 = ("uint32", 4, "int")
    UINT64 = ("uint64", 8, "int")
    BOOL = ("bool", 1, "bool")
    COMPLEX32 = ("complex32", 4, "complex")
    COMPLEX64 = ("complex64", 8, "complex")
    COMPLEX128 = ("complex128", 16, "complex")
    FLOAT8_E4M3FN = ("float8_e4m3fn", 1, "float")
    FLOAT8_E5M2 = ("float8_e5m2", 1, "float")
    FLOAT8_E4M3FNUZ = ("float8_e4m3fnuz", 1, "float")
    FLOAT8_E5M2FNUZ = ("float8_e5m2fnuz", 1, "float")
    FLOAT8_E8M0FNU = ("float8_e8m0fnu", 1, "float")

    def __init__(self, torch_name: str, itemsize: int, kind: str) -> None:
        self.torch_name = torch_name
        self.itemsize = itemsize
        self.kind = kind

    def __str__(self) -> str:
        return self.torch_name
