"""Threads and time under a schedule: real code, one thread at a time, switched where it locks or waits.

The modules of the server that make threads, locks, conditions, queues, sockets or ask the time get those of a
`Simulation` instead (`tests.model.patches`). Which thread goes on at each switch is a function of the seed, so that a
schedule can be played again. Nothing runs while the test looks, and time passes only when the test says so.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum, auto
from typing import Any, ClassVar

# Whether a thread that takes a lock lets another go first.
PREEMPTION = 0.4


class SimulationOver(BaseException):
    """Unwinds the threads of a simulation that has ended."""


class Process:
    """Whose threads run or stand still together."""

    def __init__(self, rank: int, name: str) -> None:
        self.rank = rank
        self.name = name
        self.stopped = False
        self.dead = False

    @property
    def frozen(self) -> bool:
        """Whether its threads stand still, for now or for ever."""
        return self.stopped or self.dead

    def __repr__(self) -> str:
        return self.name


class _State(Enum):
    READY = auto()
    WAITING = auto()
    DONE = auto()


class _Worker:
    """A thread of the operating system; simulated threads use it one after another."""

    idle: ClassVar[list[_Worker]] = []

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.thread: SimulatedThread | None = None
        threading.Thread(target=self._run, name="simulated", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.go.acquire()
            thread = self.thread
            assert thread is not None
            thread.simulation.workers[threading.get_ident()] = thread
            thread.run()
            del thread.simulation.workers[threading.get_ident()]
            self.thread = None
            _Worker.idle.append(self)
            thread.simulation.back.release()


class SimulatedThread:
    """One thread: ready, waiting (until `due`, if that is said), or done."""

    def __init__(
        self, simulation: Simulation, function: Callable[[], object], owner: Process | None, name: str
    ) -> None:
        self.simulation = simulation
        self.owner = owner
        self.name = name
        self.state = _State.READY
        self.due: float | None = None
        self._function = function
        self._worker = _Worker.idle.pop() if _Worker.idle else _Worker()
        self._worker.thread = self

    def run(self) -> None:
        """Do its work; on its worker only."""
        try:
            if not self.simulation.over:
                self._function()
        except SimulationOver:
            pass
        except BaseException as error:
            self.simulation.crashes.append((self.name, error))
        self.state = _State.DONE

    def resume(self) -> None:
        """Let it run until it waits, yields or ends; from the test only."""
        simulation = self.simulation
        if simulation.interrupted:
            raise KeyboardInterrupt
        try:
            self._worker.go.release()
            simulation.back.acquire()
        except BaseException:
            # Whose turn it is cannot be told any more: the threads are left where they are.
            simulation.interrupted = True
            raise

    def leave(self) -> None:
        """Let the test go on; from this thread only."""
        self.simulation.back.release()
        self._worker.go.acquire()
        if self.simulation.over:
            raise SimulationOver

    def wake(self) -> None:
        """It waits no longer."""
        if self.state is _State.WAITING:
            self.state, self.due = _State.READY, None


class Simulation:
    """All threads of one schedule, and its clock. Seed 0 never preempts and takes the threads in turn."""

    def __init__(self, seed: int) -> None:
        self.now = 1000.0
        self.over = False
        self.interrupted = False
        self.switches = 0
        self.crashes: list[tuple[str, BaseException]] = []
        self.back = threading.Lock()
        self.back.acquire()
        self.workers: dict[int, SimulatedThread] = {}
        self._seed = seed
        self._random = random.Random(seed)
        self._driver = threading.get_ident()
        self._threads: list[SimulatedThread] = []

    def spawn(
        self, function: Callable[[], object], owner: Process | None = None, name: str = "test"
    ) -> SimulatedThread:
        """A new thread, ready to run."""
        thread = SimulatedThread(self, function, owner, name)
        self._threads.append(thread)
        return thread

    def run(self, limit: int | None = None) -> None:
        """Run what can run: until nothing can, or for `limit` switches. Raises what crashed a thread."""
        while limit is None or limit > 0:
            ready = [it for it in self._threads if it.state is _State.READY and not _frozen(it)]
            if not ready:
                break
            thread = ready[0] if not self._seed else self._random.choice(ready)
            thread.resume()
            self.switches += 1
            if thread.state is _State.DONE:
                self._threads.remove(thread)
            if limit is not None:
                limit -= 1
        for name, error in self.crashes:
            raise AssertionError(f"thread {name} crashed: {error!r}") from error

    @property
    def quiet(self) -> bool:
        """Whether nothing can run before time passes or the test does something."""
        return not any(it.state is _State.READY and not _frozen(it) for it in self._threads)

    def advance(self, seconds: float) -> None:
        """Let time pass; whoever waited long enough runs at the time that it waited for."""
        target = self.now + seconds
        while True:
            self.run()
            due = min((it.due for it in self._waiting() if it.due is not None), default=None)
            if due is None or due > target:
                break
            self.now = max(self.now, due)
            for thread in self._waiting():
                if thread.due is not None and thread.due <= self.now:
                    thread.wake()
        self.now = target

    def close(self) -> None:
        """End every thread, wherever it is."""
        self.over = True
        while self._threads and not self.interrupted:
            thread = self._threads[-1]
            if thread.state is _State.DONE:
                self._threads.pop()
            else:
                thread.resume()

    @property
    def current(self) -> SimulatedThread | None:
        """The simulated thread that asks; None for the test itself."""
        return self.workers.get(threading.get_ident())

    @property
    def driving(self) -> bool:
        """Whether the thread that asks belongs to this simulation, as the test itself does."""
        ident = threading.get_ident()
        return ident == self._driver or ident in self.workers

    def park(self, timeout: float | None) -> None:
        """Wait until somebody wakes this thread, or time has passed."""
        thread = self.current
        assert thread is not None, "the test itself would have to wait"
        thread.state = _State.WAITING
        thread.due = None if timeout is None else self.now + timeout
        thread.leave()

    def preempt(self) -> None:
        """Perhaps let another thread go first."""
        thread = self.current
        if thread is not None and self._seed and self._random.random() < PREEMPTION:
            thread.leave()

    def _waiting(self) -> list[SimulatedThread]:
        return [it for it in self._threads if it.state is _State.WAITING]


def _frozen(thread: SimulatedThread) -> bool:
    return thread.owner is not None and thread.owner.frozen


class SimulatedLock:
    """A lock. `shared`: of several processes, so that no switch happens within. `again`: for its holder, too."""

    def __init__(self, simulation: Simulation, shared: bool = False, again: bool = True) -> None:
        self._simulation = simulation
        self._shared = shared
        self._again = again
        self._holder: SimulatedThread | Simulation | None = None
        self._depth = 0
        self._queue: deque[SimulatedThread] = deque()

    def acquire(self, blocking: bool = True) -> bool:
        """Take it; False when it is not free and `blocking` is not."""
        simulation = self._simulation
        if simulation.over:
            return True
        me = simulation.current or simulation
        assert self._again or self._holder is not me, "its holder would wait for itself"
        if self._holder is not me:
            if not self._shared:
                simulation.preempt()
            while self._holder is not None:
                if not blocking:
                    return False
                assert isinstance(me, SimulatedThread), "the test itself would have to wait for a lock"
                self._queue.append(me)
                simulation.park(None)
        self._holder = me
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back."""
        if self._simulation.over:
            return
        assert self._holder is (self._simulation.current or self._simulation)
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
            if self._queue:
                self._queue.popleft().wake()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedCondition:
    """As `threading.Condition`."""

    def __init__(
        self, lock: SimulatedLock | None = None, *, simulation: Simulation, shared: bool = False
    ) -> None:
        self._simulation = simulation
        self._lock = lock or SimulatedLock(simulation, shared)
        self._waiters: list[SimulatedThread] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a notification; False when `timeout` seconds were over first."""
        if timeout is not None and timeout <= 0:
            return False
        me = self._simulation.current
        assert me is not None, "the test itself would have to wait"
        self._waiters.append(me)
        self._lock.release()
        self._simulation.park(timeout)
        notified = me not in self._waiters
        if not notified:
            self._waiters.remove(me)
        self._lock.acquire()
        return notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `predicate` holds; its last value."""
        end = None if timeout is None else self._simulation.now + timeout
        while not (holds := predicate()):
            left = None if end is None else end - self._simulation.now
            if left is not None and left <= 0:
                return holds
            self.wait(left)
        return holds

    def notify(self, n: int = 1) -> None:
        """Wake `n` threads."""
        for thread in self._waiters[:n]:
            thread.wake()
        del self._waiters[:n]

    def notify_all(self) -> None:
        """Wake all threads."""
        self.notify(len(self._waiters))


class SimulatedEvent:
    """As `threading.Event`."""

    def __init__(self, simulation: Simulation) -> None:
        self._changed = SimulatedCondition(simulation=simulation)
        self._set = False

    def set(self) -> None:
        with self._changed:
            self._set = True
            self._changed.notify_all()

    def wait(self) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._set)


class SimulatedFuture(Future[Any]):
    """A future whose `result` waits in simulated time."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._condition: Any = SimulatedCondition(simulation=simulation)


class SimulatedQueue:
    def __init__(self, simulation: Simulation) -> None:
        self._changed = SimulatedCondition(simulation=simulation)
        self._items: deque[Any] = deque()

    def put(self, item: object) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def get(self) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items))
            return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


class StartedThread:
    def __init__(
        self, simulation: Simulation, target: Callable[..., object], args: tuple[Any, ...], name: str
    ) -> None:
        self._simulation = simulation
        self._target = target
        self._args = args
        self._name = name

    def start(self) -> None:
        maker = self._simulation.current
        owner = maker.owner if maker is not None else None
        self._simulation.spawn(lambda: self._target(*self._args), owner, self._name)


class SimulatedExecutor:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._futures: list[Future[Any]] = []

    def submit(self, function: Callable[..., object], *args: object) -> Future[Any]:
        future = answer_of(self._simulation, lambda: function(*args))
        self._futures.append(future)
        return future

    def __enter__(self) -> SimulatedExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._simulation.over:
            for future in self._futures:
                future.exception()


def answer_of(
    simulation: Simulation, function: Callable[[], object], owner: Process | None = None
) -> Future[Any]:
    """What `function` gives or raises, on a thread of its own."""
    future = SimulatedFuture(simulation)

    def run() -> None:
        try:
            answer = function()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(answer)

    simulation.spawn(run, owner, "call")
    return future
