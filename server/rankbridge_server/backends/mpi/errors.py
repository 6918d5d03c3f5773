"""Errors of this backend."""

from __future__ import annotations

from ...core.errors import BridgeError, ErrorCode, Phase


def data_failed(reason: str) -> BridgeError:
    """The error of an operation that began and failed: some members may have done it."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"MPI failed: {reason}", phase=Phase.DATA, indefinite=True
    )


def forming_failed(reason: str, *, expected: str = "", got: str = "") -> BridgeError:
    """The error of a group that was not formed."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"MPI: {reason}", phase=Phase.FORMING, expected=expected, got=got
    )
