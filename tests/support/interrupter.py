"""Interruptions (Ctrl-C) of the main thread, at whatever moment they come."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

MOST_DELAY_S = 0.004
SEED = 7
PATIENCE_S = 20.0


class Interrupter:
    """A thread that interrupts the main thread, which makes it, some milliseconds after it was asked to, and once."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        # True: interrupt; False: end. No semaphore, which an interruption could leave locked.
        self._asked: SimpleQueue[bool] = SimpleQueue()
        # Whether a signal is to interrupt, whether calls are made that it may interrupt, and whether it has.
        self._armed = False
        self._calling = False
        self._raised = False
        self._before = signal.signal(signal.SIGINT, self._handle)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def interrupt(self, call: Callable[[], object]) -> None:
        """Makes calls until one of them is interrupted."""
        with pytest.raises(KeyboardInterrupt):
            self._call_until_interrupted(call)

    def close(self) -> None:
        self._asked.put(False)
        self._thread.join(PATIENCE_S)
        signal.signal(signal.SIGINT, self._before)

    def _call_until_interrupted(self, call: Callable[[], object]) -> None:
        self._raised, self._calling = False, True
        self._asked.put(True)
        try:
            while not self._raised:
                call()
        finally:
            self._calling = False
        # Python ignores what is raised while it collects an object.
        raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if self._armed and self._calling:
            self._armed = False
            self._raised = True
            raise KeyboardInterrupt

    def _run(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        pause = threading.Event()
        while self._asked.get():
            pause.wait(self._random.random() * MOST_DELAY_S)
            self._armed = True
            signal.pthread_kill(main, signal.SIGINT)
