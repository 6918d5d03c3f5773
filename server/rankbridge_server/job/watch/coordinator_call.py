"""A call of a coordinator's method, and what writes it down."""

from __future__ import annotations

import time
from _thread import get_ident
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .recorder import KnownGroup, Recorder
from .ring import IS_WHOLE, KINDS, NO_SHAPE, ON_DEVICE
from .sites import Site

_CODES = {kind: code for code, kind in enumerate(KINDS)}


class CoordinatorCall(NamedTuple):
    """A call that begins. `number`: in its group, or of a send or a receive in its channel, from 1.

    `began`: in seconds since 1970. `root`, `peer`: ranks in the job; -1: it has none, as `tag`. `dtype`, `shape`: of
    its tensor; None: it has none, or its size is not known before. `on_device`: whether that is on a device.
    """

    kind: str
    group: KnownGroup
    number: int
    began: float
    root: int
    peer: int
    tag: int
    dtype: Any
    shape: tuple[int, ...] | None
    on_device: bool
    site: Site


class CoordinatorCalls(Protocol):
    """Writes calls of coordinators down."""

    def begin(self, call: CoordinatorCall) -> Callable[[BaseException | None], None] | None:
        """Writes a call. Gives what is called when it returns, with what it has raised; None: it is not written."""


class RingCalls:
    """Writes them into the record of `rankbridge watch`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def begin(self, call: CoordinatorCall) -> Callable[[BaseException | None], None] | None:
        """Writes a call, and that this thread waits."""
        recorder, now = self._recorder, time.time
        ring = recorder.ring()
        if ring is None:
            return None
        dtype = count = dimensions = elements = 0
        shape = NO_SHAPE
        if call.shape is not None:
            count, dtype = 1, recorder.dtypes.get(call.dtype, 0)
            dimensions, shape, elements = recorder.shape(call.shape)
        place = ring.begin(
            call.began, call.number, _CODES[call.kind], dtype, dimensions,
            IS_WHOLE | ON_DEVICE if call.on_device else IS_WHOLE, call.group.number, count,
            call.site.number, -1, call.root, call.peer, call.tag, elements, shape,
        )  # fmt: skip
        waiting, thread = recorder.waiting, get_ident()
        before = waiting.get(thread, 0.0)
        waiting[thread] = call.began
        ring.waiting(call.began)

        def end(error: BaseException | None) -> None:
            if error is not None:
                ring.failed(place)
            ring.end(place, now())
            ring.waiting(before)
            if before:
                waiting[thread] = before
            else:
                waiting.pop(thread, None)

        return end
