"""Why torch.distributed raises: the bridge's error, as the cause of torch's."""

from __future__ import annotations

import logging
import sys

from torch.distributed import c10d_logger

from ..core.errors import BridgeError


class Causes(logging.Handler):
    """Gives an exception that leaves one of torch.distributed's functions its cause. `end`: why the generation is over.

    Torch logs every such exception at level DEBUG while it is handled, and nothing else tells of it.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.end: BridgeError | None = None
        logger = c10d_logger._c10d_logger
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        """Acts on the exception that is being handled."""
        error = sys.exception()
        if self.end is not None and error is not None and error.__cause__ is None:
            error.__cause__ = self.end
