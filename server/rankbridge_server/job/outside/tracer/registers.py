"""ptrace and the registers of a thread, on x86-64."""

from __future__ import annotations

import ctypes
import os
from enum import IntEnum

_LIBC = ctypes.CDLL(None, use_errno=True)
_PTRACE = _LIBC.ptrace
_PTRACE.restype = ctypes.c_long
_PTRACE.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_PRSTATUS, _XSTATE = 1, 0x202
_MOST_BYTES = 1 << 16
"""Of the vector registers. With AMX they take 11 KB."""


_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)


class Request(IntEnum):
    """What ptrace is asked for. Names are those of ptrace(2)."""

    CONT = 7
    DETACH = 17
    GETREGSET = 0x4204
    SETREGSET = 0x4205
    SEIZE = 0x4206
    INTERRUPT = 0x4207
    LISTEN = 0x4208


class Registers(ctypes.Structure):
    """The general registers: `struct user_regs_struct`."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in _NAMES]
    rax: int
    rcx: int
    rdx: int
    rsi: int
    rdi: int
    orig_rax: int
    rip: int
    eflags: int
    rsp: int


class _Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    length: int


def ask(request: Request, thread: int, address: int = 0, data: int = 0) -> None:
    """Asks ptrace. Raises OSError."""
    if _PTRACE(request, thread, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{request.name}: {os.strerror(number)}")


def general(thread: int) -> Registers:
    """The general registers of a stopped thread."""
    found = Registers()
    _transfer(Request.GETREGSET, thread, _PRSTATUS, found, ctypes.sizeof(found))
    return found


def set_general(thread: int, registers: Registers) -> None:
    """Sets the general registers of a stopped thread."""
    _transfer(Request.SETREGSET, thread, _PRSTATUS, registers, ctypes.sizeof(registers))


def vectors(thread: int) -> bytes:
    """The floating-point and vector registers of a stopped thread, as many as its processor has."""
    found = ctypes.create_string_buffer(_MOST_BYTES)
    length = _transfer(Request.GETREGSET, thread, _XSTATE, found, _MOST_BYTES)
    return found.raw[:length]


def set_vectors(thread: int, found: bytes) -> None:
    """Sets them, all at once: the kernel takes no part of them."""
    _transfer(Request.SETREGSET, thread, _XSTATE, ctypes.create_string_buffer(found, len(found)), len(found))


def _transfer(
    request: Request, thread: int, kind: int, place: ctypes.Structure | ctypes.Array[ctypes.c_char], size: int
) -> int:
    """Moves one set of registers; gives how many bytes it has."""
    vector = _Vector(ctypes.addressof(place), size)
    ask(request, thread, kind, ctypes.addressof(vector))
    return vector.length
