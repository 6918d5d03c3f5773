"""One communicator of a group, and the order of work on the device that goes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

from .engine import Side
from .errors import ENGINE_ERRORS, data_failed
from .raw import NcclGroup, Work


class Channel:
    """Runs operations on a communicator, one at a time. Two channels never wait for each other.

    Their sides are their own: torch makes the current stream wait for an operation that is waited for, and every
    operation for the current stream.
    """

    def __init__(self, group: NcclGroup, side: Side) -> None:
        self._group: NcclGroup | None = group
        self._side = side

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Work on the device; on leaving, all of it is done. Raises BACKEND_FAILED."""
        try:
            with self._side.current():
                yield
            self._side.synchronize()
        except ENGINE_ERRORS as error:
            raise data_failed(str(error)) from error

    def run(self, start: Callable[[NcclGroup], Work | None], timeout: float) -> None:
        """Start something and wait for it, `timeout` seconds. Raises BACKEND_FAILED, or what torch raises."""
        group = self._open()
        work = start(group)
        if work is not None:
            work.wait(timedelta(seconds=timeout))
        # An operation that was ended by `close` looks as if it had been done.
        self._open()

    def run_together(self, starts: Sequence[Callable[[NcclGroup], object]], timeout: float) -> None:
        """The same with several, none of which waits for another."""

        def start(group: NcclGroup) -> Work | None:
            group._start_coalescing()
            try:
                for each in starts:
                    each(group)
            except BaseException:
                with suppress(*ENGINE_ERRORS):
                    group._end_coalescing()
                raise
            return group._end_coalescing()

        self.run(start, timeout)

    def close(self) -> None:
        """End what runs, and free the communicator."""
        group, self._group = self._group, None
        if group is not None:
            # One that cannot be ended in time is left behind; nobody uses it.
            with suppress(*ENGINE_ERRORS):
                group.abort()

    def _open(self) -> NcclGroup:
        if self._group is None:
            raise data_failed("the group was closed")
        return self._group
