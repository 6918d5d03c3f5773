"""Sees waits in Python."""

from __future__ import annotations

import time
from _thread import get_ident
from functools import wraps
from typing import Any

from .recorder import Recorder


class Waits:
    """Sees each `wait` of torch's works in Python, from now on until `end`. `work`: torch's class of them."""

    def __init__(self, recorder: Recorder, work: Any) -> None:
        self._work = work
        self._bare = bare = vars(work)["wait"]
        to_wait_for, followed, now = recorder.to_wait_for, recorder.followed, time.time
        calls = followed.calls
        outer = recorder.waiting

        @wraps(work.wait)
        def wait(self: Any, *args: Any, **named: Any) -> Any:
            ring = recorder.written
            call = followed.take(self) if calls else None
            if ring is None and call is None:
                return bare(self, *args, **named)
            failed: BaseException | None = None
            place = to_wait_for.pop(get_ident(), None)
            if ring is not None:
                ring.waiting(now())
            try:
                return bare(self, *args, **named)
            except BaseException as error:
                failed = error
                raise
            finally:
                if ring is not None:
                    ring.waiting(outer.get(get_ident(), 0.0) if outer else 0.0)
                    if place is not None:
                        if failed is not None:
                            ring.failed(place)
                        ring.waited(place, now())
                if call is not None:
                    call.over(failed)

        self._watched = wait
        work.wait = wait

    def end(self) -> None:
        """Gives torch its own back, unless somebody has wrapped this one."""
        if vars(self._work)["wait"] is self._watched:
            self._work.wait = self._bare
