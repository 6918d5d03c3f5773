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
# Python ignores what is raised while it collects an object: what is not noticed for so long is raised again.
IGNORED_S = 5.0


class Interrupter:
    """A thread that interrupts the main thread, which makes it, some milliseconds after it was asked to."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        self._asked = threading.Semaphore(0)
        self._raised = threading.Semaphore(0)
        self._noticed = threading.Semaphore(0)
        # Whether a signal interrupts: one that comes late does not.
        self._armed = False
        self._over = False
        self._before = signal.signal(signal.SIGINT, self._handle)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def interrupt(self, call: Callable[[], object]) -> None:
        """Makes calls until one of them is interrupted."""
        with pytest.raises(KeyboardInterrupt):
            self._call_until_interrupted(call)
        self._noticed.release()

    def close(self) -> None:
        self._over, self._armed = True, False
        for it in (self._asked, self._raised, self._noticed):
            it.release()
        self._thread.join(PATIENCE_S)
        signal.signal(signal.SIGINT, self._before)

    def _call_until_interrupted(self, call: Callable[[], object]) -> None:
        self._asked.release()
        while True:
            call()

    def _handle(self, *_: object) -> None:
        if self._armed:
            self._armed = False
            self._raised.release()
            raise KeyboardInterrupt

    def _run(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        pause = threading.Event()
        while self._asked.acquire() and not self._over:
            pause.wait(self._random.random() * MOST_DELAY_S)
            noticed = False
            while not noticed and not self._over:
                self._armed = True
                signal.pthread_kill(main, signal.SIGINT)
                self._raised.acquire()
                noticed = self._noticed.acquire(timeout=IGNORED_S)
