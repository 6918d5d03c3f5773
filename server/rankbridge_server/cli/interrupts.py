"""Interrupts while modules are imported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_end_it() -> Iterator[None]:
    """Lets an interrupt end the process meanwhile, unless somebody handles or ignores it.

    Python raises KeyboardInterrupt wherever it is: while it imports, that may be where exceptions are ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
