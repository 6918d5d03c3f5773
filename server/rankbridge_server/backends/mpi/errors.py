"""Errors of this backend."""

from __future__ import annotations

from ...core.errors import BridgeError, ErrorCode, Phase


def data_failed(reason: str) -> BridgeError:
    """An operation began and did not end well: some members may have done it."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"MPI failed: {reason}", phase=Phase.DATA, indefinite=True
    )


def forming_failed(reason: str, *, expected: str = "", got: str = "") -> BridgeError:
    """A group was not formed."""
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"MPI: {reason}", phase=Phase.FORMING, expected=expected, got=got
    )
