"""The server's modules with a simulation's threads, time and sockets in place of the real ones."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.model.simulation import (
    SimulatedCondition,
    SimulatedEvent,
    SimulatedExecutor,
    SimulatedLock,
    SimulatedQueue,
    Simulation,
    StartedThread,
)
from tests.support.simulated_sockets import Network

from rankbridge_server.backends.fake import backend as fake_backend, meeting
from rankbridge_server.core import alarms, engine_threads, generation, lane, rank, task, waker
from rankbridge_server.core.admission.admission import Admission, Arrival, Reply
from rankbridge_server.core.groups import forming, preparation
from rankbridge_server.core.operations import outcomes
from rankbridge_server.core.refs import refs
from rankbridge_server.links import follower, group_links, leader, link, readers, sockets


class _OrderedSet(dict[Any, None]):
    """A set in the order in which its items came."""

    def add(self, item: object) -> None:
        self[item] = None

    def discard(self, item: object) -> None:
        self.pop(item, None)


class _Threading:
    """Stands for the module `threading`; threads outside the simulation get the real thing."""

    def __init__(self, simulation: Simulation, shared: bool = False) -> None:
        self._simulation = simulation
        self._shared = shared

    def Lock(self) -> Any:
        it = self._simulation
        return SimulatedLock(it, self._shared, again=False) if it.driving else threading.Lock()

    def RLock(self) -> Any:
        it = self._simulation
        return SimulatedLock(it, self._shared) if it.driving else threading.RLock()

    def Condition(self, lock: Any = None) -> Any:
        it = self._simulation
        if not it.driving:
            return threading.Condition(lock)
        return SimulatedCondition(lock, simulation=it, shared=self._shared)

    def Event(self) -> Any:
        return SimulatedEvent(self._simulation) if self._simulation.driving else threading.Event()

    def get_ident(self) -> int:
        return threading.get_ident()

    def Thread(
        self, target: Callable[..., object], args: Any = (), name: str = "", daemon: bool = True
    ) -> Any:
        if not self._simulation.driving:
            return threading.Thread(target=target, args=args, name=name, daemon=daemon)
        return StartedThread(self._simulation, target, tuple(args), name)


class _Time:
    """Stands for the module `time`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def monotonic(self) -> float:
        return self._simulation.now if self._simulation.driving else time.monotonic()


def _recorded(faults: list[str]) -> type[Admission]:
    """Admissions that say which arrivals they refuse: no rank of ours may ever say what a leader refuses to hear."""

    class Recorded(Admission):
        def arrive(self, rank_in_group: int, arrival: Arrival, now: float) -> list[Reply]:
            try:
                return super().arrive(rank_in_group, arrival, now)
            except ValueError as error:
                faults.append(str(error))
                raise

    return Recorded


@contextlib.contextmanager
def patched(simulation: Simulation) -> Iterator[Network]:
    """The server's modules take threads, time and sockets from the simulation; gives what connects its processes."""

    def either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: simulated(simulation) if simulation.driving else real(*args, **kwargs)

    private, shared, clock = _Threading(simulation), _Threading(simulation, shared=True), _Time(simulation)
    network = Network(simulation)
    files = network.files
    polls = SimpleNamespace(poll=files.poll, epoll=files.epoll, POLLIN=select.POLLIN, EPOLLIN=select.EPOLLIN)
    pairs = SimpleNamespace(socketpair=files.socketpair)
    links = (follower, group_links, leader, link, readers, sockets)
    patches: list[tuple[ModuleType, str, object]] = [
        *(
            (module, "threading", private)
            for module in (alarms, engine_threads, generation, lane, outcomes, rank, refs, task)
        ),
        *((module, "threading", private) for module in (group_links, link, readers, sockets)),
        *((module, "threading", shared) for module in (fake_backend, meeting)),
        *((module, "time", clock) for module in (alarms, forming, preparation, refs, task, meeting, *links)),
        *((module, "select", polls) for module in (group_links, link, readers)),
        (waker, "socket", pairs),
        (lane, "SimpleQueue", either(SimulatedQueue, SimpleQueue)),
        (forming, "ThreadPoolExecutor", either(SimulatedExecutor, ThreadPoolExecutor)),
        (leader, "Admission", _recorded(network.faults)),
        # A set is in the order of its items' addresses, which no seed repeats.
        (generation, "set", _OrderedSet),
        (readers, "set", _OrderedSet),
    ]
    saved = [(module, name, getattr(module, name, None)) for module, name, _ in patches]
    for module, name, value in patches:
        setattr(module, name, value)
    try:
        yield network
    finally:
        for module, name, value in saved:
            if value is None:
                delattr(module, name)
            else:
                setattr(module, name, value)
