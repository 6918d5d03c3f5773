"""The errors of engines. `engine`: what it is called, at the beginning of a sentence."""

from __future__ import annotations

from ..core.errors import BridgeError, ErrorCode, Phase


def data_failed(engine: str, reason: str) -> BridgeError:
    """The error of an operation that began and failed: some members may have done it."""
    message = f"{engine} failed: {reason}"
    return BridgeError.of(ErrorCode.BACKEND_FAILED, message, phase=Phase.DATA, indefinite=True)


def forming_failed(engine: str, reason: str, *, expected: str = "", got: str = "") -> BridgeError:
    """The error of a group that was not formed."""
    message = f"{engine} did not connect: {reason}"
    return BridgeError.of(ErrorCode.BACKEND_FAILED, message, phase=Phase.FORMING, expected=expected, got=got)
