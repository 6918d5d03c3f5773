"""Interruptions (Ctrl-C) of the main thread, at whatever moment they come."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable

import pytest

MOST_DELAY_S = 0.004
SEED = 7
PATIENCE_S = 20.0


class Interrupter:
    """A thread that interrupts the main thread, some milliseconds after it was asked to.

    Again half a second later if that was not noticed: Python ignores what is raised while it collects an object.
    """

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        self._asked = threading.Semaphore(0)
        self._noticed = threading.Semaphore(0)
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def interrupt(self, call: Callable[[], object]) -> None:
        """Makes calls until one of them is interrupted."""
        with pytest.raises(KeyboardInterrupt):
            self._call_until_interrupted(call)
        self._noticed.release()

    def _call_until_interrupted(self, call: Callable[[], object]) -> None:
        self._asked.release()
        while True:
            call()

    def close(self) -> None:
        self._over = True
        self._asked.release()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while self._asked.acquire() and not self._over:
            delay = self._random.random() * MOST_DELAY_S
            while not self._over and not self._noticed.acquire(timeout=delay):
                signal.pthread_kill(main, signal.SIGINT)
                delay = 0.5
