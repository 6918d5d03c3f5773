"""Errors of this backend."""

from __future__ import annotations

from ...core.errors import BridgeError, ErrorCode, Phase

ENGINE_ERRORS = (RuntimeError, ValueError, TypeError)
"""What torch raises when NCCL or CUDA fails, or when it refuses a tensor."""


def forming_failed(reason: str, *, expected: str = "", got: str = "") -> BridgeError:
    """A group was not made."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED,
        f"NCCL did not connect: {reason}",
        phase=Phase.FORMING,
        expected=expected,
        got=got,
    )


def data_failed(reason: str) -> BridgeError:
    """An operation that was begun failed."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"NCCL failed: {reason}", phase=Phase.DATA, indefinite=True
    )
