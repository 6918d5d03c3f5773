"""Calls that the dispatcher's hooks do not see: torch's own hooks of a group tell of them, from torch 2.14 on."""

from __future__ import annotations

import atexit
import sys
import time
import weakref
from _thread import get_ident
from types import FrameType
from typing import Any

from .next_call import POSTS
from .recorder import KnownGroup, Recorder
from .ring import KINDS, Ring

_KINDS = {
    "SEND": "send",
    "RECV": "recv",
    "BROADCAST": "broadcast",
    "ALLREDUCE": "all_reduce",
    "REDUCE": "reduce",
    "ALLGATHER": "all_gather",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "BARRIER": "barrier",
    "SCATTER": "scatter",
    "GATHER": "gather",
}
"""By torch's names. It has one for all operators of a kind."""
_HOOK_ID = 0x72616E6B
"""A group knows its hooks by numbers: whoever else hooks it takes another one."""


class UnseenCalls:
    """Records calls of an operator that is newer than the dispatcher's hooks, or that somebody else has hooked.

    Torch tells of them without reduce op and tag. `seeing`: the file of the dispatcher's hooks.
    """

    def __init__(self, recorder: Recorder, seeing: str) -> None:
        self._recorder = recorder
        self._seeing = seeing
        self._hooked: list[weakref.ref[Any]] = []
        recorder.new_group = self._watch
        # A group that outlives Python ends the process when it frees its hooks.
        atexit.register(self.end)

    def end(self) -> None:
        """Takes the hooks back."""
        atexit.unregister(self.end)
        self._recorder.new_group = None
        for reference in self._hooked:
            group = reference()
            if group is not None:
                group.unregister_pre_hook(_HOOK_ID)
                group.unregister_post_hook(_HOOK_ID)
        self._hooked.clear()

    def _watch(self, group: Any, known: KnownGroup) -> None:
        caller, seeing, under_way = sys._getframe, self._seeing, dict[int, int]()

        def before(call: Any) -> None:
            # A thread of C++ alone has no frame but this.
            frame = caller().f_back
            if frame is None or frame.f_code.co_filename != seeing:
                self._unless_seen(call, frame, known, under_way)

        group.register_pre_hook(_HOOK_ID, before)
        self._hooked = [it for it in self._hooked if it() is not None]
        self._hooked.append(weakref.ref(group))

    def _unless_seen(
        self, call: Any, frame: FrameType | None, known: KnownGroup, under_way: dict[int, int]
    ) -> None:
        # Between the dispatcher's hook and torch's there may be a function of torch.
        outer = frame.f_back if frame is not None else None
        if outer is not None and outer.f_code.co_filename == self._seeing:
            return
        kind, group, ring = _KINDS.get(call.name.name), known.is_of(), self._recorder.written
        if kind is None or group is None or ring is None:
            return
        try:
            # Not before there is such a call, as this hook, too, costs time in each that was seen.
            group.register_post_hook(_HOOK_ID, lambda done: self._returned(done, under_way))
            under_way[call.op_id] = self._record(ring, kind, call, frame, known)
        except Exception as error:
            self._recorder.complain(error)

    def _record(self, ring: Ring, kind: str, call: Any, frame: FrameType | None, known: KnownGroup) -> int:
        is_post = kind in POSTS
        return self._recorder.begin(
            ring,
            KINDS.index(kind),
            known,
            self._recorder.site(frame),
            call.input_tensors or call.output_tensors,
            -1,
            -1 if is_post else call.root,
            call.root if is_post else -1,
            -1,
            call.async_op,
        )

    def _returned(self, call: Any, under_way: dict[int, int]) -> None:
        place, ring = under_way.pop(call.op_id, None), self._recorder.written
        if place is None or ring is None:
            return
        ring.end(place, time.time())
        if not call.async_op:
            self._recorder.to_wait_for[get_ident()] = place
