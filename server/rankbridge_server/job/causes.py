"""Why torch.distributed raises: the bridge's error, as the cause of torch's."""

from __future__ import annotations

import logging
import sys
import threading

from torch.distributed import c10d_logger

from ..core.errors import BridgeError

_ENGINES = ("gloo", "NCCL")
_GRACE_S = 0.5
"""How long the failure of an engine waits for the links to report a lost rank: the kernel may tell the engine first."""


class Causes(logging.Handler):
    """Gives an exception that leaves one of torch.distributed's functions its cause: why the generation is over.

    Torch logs every such exception at level DEBUG while it is handled, which is the only sign of it. It does
    not log what its C++ alone raises, as in a backward pass: `explain` is for that.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._end: BridgeError | None = None
        self._ended = threading.Event()
        logger = c10d_logger._c10d_logger
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)

    def begin(self) -> None:
        """A generation begins."""
        self._end = None
        self._ended.clear()

    def end(self, error: BridgeError) -> None:
        """It is over."""
        self._end = error
        self._ended.set()

    def emit(self, record: logging.LogRecord) -> None:
        """Acts on the exception that is being handled."""
        if (error := sys.exception()) is not None:
            self.explain(error)

    def explain(self, error: BaseException) -> None:
        """Gives an exception its cause, if the generation is over; waits for that, if an engine has raised it."""
        if error.__cause__ is not None or isinstance(error, BridgeError):
            return
        if any(name in str(error) for name in _ENGINES):
            self._ended.wait(_GRACE_S)
        if self._end is not None:
            error.__cause__ = self._end
