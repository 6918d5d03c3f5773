"""One rank of the gang, as a sidecar serves it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial
from importlib.metadata import version
from typing import TypeVar

from .activity import Activity, Doing
from .alarms import Alarms
from .coordinator import Backend, GroupDescription
from .errors import BridgeError, ErrorCode, Phase, Place, exhausted, invalid
from .events import EventLog, Straggler
from .functions.functions import Functions, NoFunctions
from .functions.reports import Reader, ReportBook
from .functions.run import Run
from .gang_calls.gang_calls import GangCalls
from .gang_calls.messages import GangMessage, Relay, RelayKind, Release
from .gang_calls.route import Route
from .generation import Generation
from .groups.group import WORLD, GroupView, Membership
from .groups.preparation import Preparation, RankAddress
from .guests import LEASE_S, SHARE, Guests, check_share, home_of
from .hold.holds import Holds, Hook
from .lane import Courier
from .limits import MAX_GENERATIONS_AHEAD, MAX_REASON, Limits
from .links import Ended, LinkMaker
from .metrics import Family, Metrics, gauge, gauges
from .operations.operation import FunctionPlan, Job, LocalPlan, Operation, Site, Transfer
from .operations.outcomes import KEPT_BYTES, REMEMBERED, Outcomes
from .programs.graphs import GraphStore
from .queues.host import host_id as this_host
from .queues.view import QueueView
from .record.record import Record
from .record.recorded import Recorded
from .record.script_calls import ScriptCalls
from .refs.refs import MAX_ID_BYTES, RefStore
from .shared_memory.segments import Segments
from .task import Call, Task

Args = TypeVar("Args")


class State(Enum):
    """The state of a rank's generation. Names are those of `rankbridge.v1.GenerationState`."""

    NONE = auto()
    PREPARED = auto()
    FORMED = auto()
    OVER = auto()


@cache
def _version() -> str:
    return version("rankbridge")


@dataclass(frozen=True, slots=True)
class Identity:
    """A rank's place as its launcher gave it: in the gang, on its host, on its file system.

    `world_size`: 0: unknown. `local_world_size`: ranks on its host; 0: unknown.
    """

    rank: int
    world_size: int
    local_rank: int
    fs_local_rank: int = 0
    local_world_size: int = 0


@dataclass(frozen=True, slots=True)
class Description:
    """A rank's generation. `number`: 0: none yet. `seen`: the highest generation that the rank was asked to prepare.

    `since_us`: when it was formed, or was over, in microseconds since 1970; 0: neither.
    """

    rank: int
    world_size: int
    number: int
    state: State
    seen: int
    error: BridgeError | None = None
    groups: Sequence[GroupView] = ()
    pending: int = 0
    since_us: int = 0


class Rank:
    """One rank: its refs, its generation, and the entry of every operation. Safe to call from any thread.

    `default_timeout`: seconds, for calls that name no timeout. `data_timeout`: seconds, for the backend. `lost`:
    called when a generation ends because a rank was lost; it must not block. `host_id`: equal for ranks that can share
    memory; None: the rank finds it out. `share_memory`: callers on the host may pass tensors in shared memory.
    `metrics`: counts operations; None: nothing is counted. `trace`: called with each operation of a caller that has a
    trace, when it is done, and with its place there. `functions`: the user's own; None: there are none. `script`: says
    at which line the script of the job is whose process this is; empty: it is no job's. `hook`: as of `Holds`.
    `record`: of its operations; None: one in memory.
    """

    def __init__(
        self,
        identity: Identity,
        backend: Backend,
        make_links: LinkMaker,
        *,
        limits: Limits,
        default_timeout: float = 30.0,
        data_timeout: float = 30.0,
        lost: Callable[[], object] = lambda: None,
        host_id: str | None = None,
        share_memory: bool = True,
        metrics: Metrics | None = None,
        trace: Callable[[Task, str], None] | None = None,
        functions: Functions | None = None,
        script: Callable[[], str] = lambda: "",
        hook: Hook | None = None,
        record: Record | None = None,
    ) -> None:
        self.identity = identity
        self.backend = backend
        self.guests = Guests()
        self.refs = RefStore(limits, self.guests)
        self.segments = Segments(limits.max_shared_bytes if share_memory else 0, self.refs.renew_session)
        self.graphs = GraphStore()
        self.functions: Functions = functions or NoFunctions()
        self.reports = ReportBook()
        # Of functions that are called on this rank alone.
        self._alone = Courier("functions")
        self.events = EventLog()
        self.record = record or Record(limits.max_record)
        self._enters = self.record.note
        self.script_calls = ScriptCalls(self.record, self._where)
        self.holds = Holds(backend.tensors.find, hook)
        self.gang_calls = GangCalls()
        self._metrics = metrics
        self._trace = trace
        if metrics is not None:
            self.events.notes.append(metrics.happened)
        self.default_timeout = default_timeout
        self.refs.rank = identity.rank
        self._limits = limits
        self._make_links = make_links
        self._data_timeout = data_timeout
        self._lost = lost
        self._script = script
        self._host_id = this_host() if host_id is None else host_id
        self._lock = threading.Lock()
        # Of the owner, and of each guest by its home: one cannot make another's be forgotten.
        self._outcomes = defaultdict(
            partial(Outcomes, REMEMBERED // SHARE, KEPT_BYTES // SHARE), {"": Outcomes()}
        )
        self._leases = Alarms("leases")
        self._seen = 0
        self._preparation: Preparation | None = None
        self._generation: Generation | None = None
        self.regrouped: Callable[[], object] = lambda: None
        """Called when a group of the generation was added or removed."""
        self.over: Callable[[], object] = lambda: None
        """Called when a generation has ended, before its operations are answered. It must not block."""

    def describe(self) -> Description:
        """The rank's state. Never waits, not even for a forming that is under way."""
        preparation, generation = self._preparation, self._generation
        described = preparation or generation
        if described is None:
            rank, world = self.identity.rank, self.identity.world_size
            return Description(rank, world, self._seen, State.NONE, self._seen)
        rank, world, number = described.rank, described.world_size, described.number
        if isinstance(described, Preparation):
            return Description(rank, world, number, State.PREPARED, self._seen)
        error, groups = described.error, described.views()
        state, event = State.OVER if error else State.FORMED, self.events.state
        since_us = event.time_us if event is not None and event.generation == number else 0
        return Description(rank, world, number, state, self._seen, error, groups, described.pending, since_us)

    def pending(self) -> tuple[list[Task], list[Straggler]]:
        """The operations that are not answered yet, and the admissions of this rank's groups that wait for members."""
        generation = self._generation
        return (generation.pending_tasks(), generation.waiting()) if generation else ([], [])

    def activity(self) -> Activity:
        """What the rank does, for who waits for it in "world"."""
        generation = self._generation
        return generation.activity(WORLD) if generation else Activity(doing=Doing.IDLE)

    def user_thread(self) -> int:
        """The thread that runs the user's code, a function or a job's script, by Python's number. 0: none does."""
        for task in self.pending()[0]:
            if task.function and task.thread:
                return task.thread
        return threading.main_thread().ident or 0 if self._script() else 0

    @property
    def has_script(self) -> bool:
        """Whether this process is a job's."""
        return bool(self._script())

    def pid_of(self, rank: int) -> int:
        """The process of another rank of this host, as the links of the generation know it. 0: it is not known."""
        generation = self._generation
        return generation.links.pid_of(rank) if generation else 0

    def recorded(self) -> list[Recorded]:
        """The last operations that have ended, in that order, and those that have not, the oldest first."""
        pending = self.under_way()
        ended = self.record.entries()
        # What has ended between both is in both.
        known = {(it.called, it.place) for it in ended} if pending else ()
        return [*ended, *(it for it in pending if (it.called, it.place) not in known)]

    def under_way(self) -> list[Recorded]:
        """The operations and calls of the user's own code that have not ended, the oldest first."""
        operations = [Recorded.of(it, 0.0) for it in self.pending()[0] if not it.done]
        calls = self.script_calls.under_way()
        return sorted([*operations, *calls], key=lambda it: it.called) if calls else operations

    def diagnosed(self, kind: str) -> None:
        """Counts a verdict on the gang that this rank has given, if it counts."""
        if self._metrics is not None:
            self._metrics.diagnosed(kind)

    def metrics(self) -> list[Family]:
        """What the rank has counted, if it counts, and what it holds and is."""
        description, usage = self.describe(), self.refs.usage()
        return [
            gauge("rankbridge_build_info", "1.", 1, version=_version(), backend=self.backend.name),
            *(self._metrics.families() if self._metrics is not None else ()),
            *gauges(self.pending()[0]),
            gauge("rankbridge_refs", "Refs that the rank holds.", sum(it.refs for it in usage)),
            gauge("rankbridge_tensor_bytes", "Bytes of their tensors.", sum(it.bytes for it in usage)),
            gauge("rankbridge_sessions", "Open sessions.", len(usage)),
            gauge(
                "rankbridge_generation", "Number of the rank's generation; 0: none yet.", description.number
            ),
            gauge(
                "rankbridge_generation_formed",
                "1: operations run; 0: the generation is prepared, or over, or there is none.",
                description.state is State.FORMED,
            ),
        ]

    def group(self, name: str) -> GroupView:
        """One group. Raises NOT_FORMED or UNKNOWN_GROUP."""
        generation = self._current(0)
        try:
            return generation.find(name).view(self.backend.name, generation.number)
        except BridgeError as error:
            raise error.at(self._place(generation)) from None

    def route(self, call: Call) -> Route:
        """The route of a gang call. Raises NOT_FORMED, STALE_GENERATION or UNKNOWN_GROUP."""
        generation = self._current(call.generation)
        try:
            return Route(generation, generation.find(call.group))
        except BridgeError as error:
            raise error.at(self._place(generation)) from None

    def queues(self) -> Sequence[QueueView]:
        """All queues of the current generation, sorted by group and name."""
        generation = self._generation
        return generation.queues() if generation else []

    def shut_down_queue(self, group: str, name: str, number: int = 0) -> QueueView:
        """Shuts down a queue on this rank. `number`: of the generation; 0: the current one. Raises BridgeError."""
        generation = self._current(number)
        place = self._place(generation)._replace(group=group or WORLD)
        try:
            membership = generation.find(group).membership
            if membership is None:
                raise BridgeError.of(ErrorCode.UNKNOWN_QUEUE, "this rank is not a member of the group")
            return membership.queues.shut_down(name)
        except BridgeError as error:
            raise error.at(place) from None

    def submit(self, operation: Operation[Args], args: Args, call: Call, *, part: bool = False) -> Task:
        """Checks an operation and queues it. Raises BridgeError for a wrong one; nothing has happened then.

        A repeated operation id returns the first call's task and runs nothing. The leader learns of a refusal; `part`:
        not from here, because a part of a gang call is reported.
        """
        generation = self._generation
        place = Place(
            rank=generation.rank if generation else self.identity.rank,
            group=call.group or WORLD,
            operation=operation.name,
            operation_id=call.operation_id,
            generation=generation.number if generation else 0,
        )
        try:
            if len(call.operation_id.encode()) > MAX_ID_BYTES:
                raise invalid("the operation id is too long", expected=f"at most {MAX_ID_BYTES} bytes")
            if not call.operation_id:
                return self._start(operation, args, call, place, part)
            request = (operation.name, args, call.group, call.session_id)
            return self._outcomes[home_of(call.operation_id)].once(
                call.operation_id, request, lambda: self._start(operation, args, call, place, part)
            )
        except BridgeError as error:
            raise error.at(place, Phase.CHECK) from None

    def find(self, operation_id: str) -> Task:
        """The task of an operation id, whoever submitted it. Raises UNKNOWN_OPERATION."""
        return self._outcomes[home_of(operation_id)].find(operation_id)

    @contextmanager
    def watch_reports(self, operation_id: str, after: int) -> Iterator[Reader]:
        """A reader of the reports of a call of a function, which may not have come yet. Raises RESOURCE_EXHAUSTED."""
        with self.reports.reading(operation_id, after) as reader:
            with suppress(BridgeError):
                if self.find(operation_id).done:
                    self.reports.close(operation_id)
            yield reader

    def open_session(self, session_id: str, lease: float) -> str:
        """Opens a session, or keeps it open. `lease`: seconds; 0: none. Returns the session's id."""
        opened = self.refs.open_session(session_id, lease)
        if lease or home_of(opened):
            self._leases.set("opened", 0.0, self._expire_sessions)
        return opened

    def welcome(self, guest: str) -> None:
        """Opens a guest's own session, or keeps it open."""
        try:
            self.refs.renew_session(guest)
        except BridgeError:
            self.open_session(guest, LEASE_S)

    def close_session(self, session_id: str) -> int:
        """Closes a session, frees its refs, withdraws its calls. Returns the number of its refs."""
        released = self.refs.close_session(session_id)
        self._forget_session(session_id)
        return released

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription]
    ) -> RankAddress:
        """First phase of forming: ends the current generation and makes this rank's addresses. Raises BridgeError."""
        with self._lock:
            if number <= self._seen:
                message = "a generation with this or a higher number was formed or prepared here"
                error = _stale(message, f"more than {self._seen}", number)
                raise error.at(Place(rank=rank, generation=number), Phase.FORMING)
            if number > self._seen + MAX_GENERATIONS_AHEAD:
                raise invalid(
                    "the number of a generation is far above the last",
                    expected=f"at most {self._seen + MAX_GENERATIONS_AHEAD}",
                    got=str(number),
                )
            preparation = Preparation(number, rank, world_size, groups, self.backend)
            self._end_current(f"generation {number} is being formed")
            self._seen = number
            address = preparation.begin(self._make_links)
            self._preparation = preparation
            self.refs.rank = rank
            return address

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        """Second phase of forming: connects, verifies, and begins the generation. Raises BridgeError."""
        with self._lock:
            preparation = self._preparation
            if preparation is None or preparation.number != number:
                expected = str(preparation.number) if preparation else "a generation that was prepared"
                error = _stale(f"generation {number} is not prepared here", expected, number)
                raise error.at(Place(rank=self.identity.rank, generation=number), Phase.FORMING)
            self._preparation = None
        generation = preparation.connect(
            addresses,
            secret,
            timeout,
            data_timeout=self._data_timeout,
            lost=self._lost,
            events=self.events,
            script=self._script,
            holds=self.holds,
            on_message=self._receive,
        )
        with self._lock:
            if self._seen != number:
                ended = Ended(preparation.rank, False, f"generation {self._seen} was prepared meanwhile")
                error = BridgeError.of(ErrorCode.ABORTED, ended.reason, phase=Phase.FORMING)
                generation.end(error, ended)
                raise error.at(Place(rank=preparation.rank, generation=number))
            self._generation = generation
            generation.regrouped, generation.over = self.regrouped, self.over
            self.holds.begin_generation()
            self.functions.formed(generation)
            generation.announce()

    def abort(self, number: int, reason: str) -> bool:
        """Ends a generation that is prepared or runs here. Returns whether this call has ended it."""
        reason = reason[:MAX_REASON]
        with self._lock:
            if self._preparation is not None and self._preparation.number == number:
                self._preparation.abandon()
                self._preparation = None
                return True
            generation = self._generation
        if generation is None or generation.number != number:
            return False
        return _abort(generation, reason)

    def close(self, reason: str) -> None:
        """Ends everything, because this rank stops."""
        self.holds.close()
        with self._lock:
            self._end_current(reason)
        self._alone.close()
        self.events.close()
        self.record.close()
        self.segments.close_all()

    def _start(self, operation: Operation[Args], args: Args, call: Call, place: Place, part: bool) -> Task:
        generation = self._current(call.generation)
        if guest := home_of(call.session_id):
            self.welcome(guest)
            held = generation.pending_of(guest)
            check_share(guest, "pending operations", held, 1, self._limits.max_pending // SHARE)
        group = generation.find(call.group)
        if group.membership is None:
            raise invalid(
                "this rank is not a member of the group",
                expected=f"one of ranks {list(group.description.ranks)}",
                got=f"rank {generation.rank}",
            )
        site = Site(
            generation=generation,
            group=group,
            membership=group.membership,
            backend=self.backend,
            refs=self.refs,
            session_id=call.session_id,
            reserve=lambda spec: self.refs.reserve(call.session_id, spec),
            graphs=self.graphs,
            host_id=self._host_id,
            functions=self.functions,
            inputs=[] if self.holds.active else None,
        )
        try:
            if generation.pending >= self._limits.max_pending:
                got = str(generation.pending + 1)
                most = str(self._limits.max_pending)
                raise exhausted("too many pending operations on this rank", most=most, got=got)
            plan = operation.plan(site, args)
        except BridgeError as error:
            if call.operation_id and not part:
                generation.refuse(group, group.membership, error.at(place, Phase.CHECK).failure)
            if call.operation_id and operation.led:
                self._refuse_run(generation, group.membership, place, error)
            raise
        task = Task(place, call.timeout, call.session_id, agreement=operation.agreement, site=call.site)
        task.note = self._enters
        task.then(self._note)
        if site.inputs:
            self.holds.inputs.keep(task, site.inputs)
        if self._trace is not None and call.traceparent:
            trace, parent = self._trace, call.traceparent
            task.then(lambda done: trace(done, parent))
        job = Job(group, group.membership, operation.name, task)
        if operation.recorded and self.graphs.recording(call.session_id, group.name):
            task.then(lambda done: self._record(call.session_id, group.name, operation, args, done))
        try:
            if isinstance(plan, FunctionPlan):
                self._call(generation, job, plan, call, part)
            elif isinstance(plan, LocalPlan):
                generation.begin(plan, task)
            elif isinstance(plan, Transfer):
                generation.post(job, plan)
            else:
                generation.start(job, plan, call.first)
        except BridgeError:
            if not isinstance(plan, LocalPlan | FunctionPlan):
                plan.abandon()
            raise
        return task

    def _call(self, generation: Generation, job: Job, plan: FunctionPlan, call: Call, part: bool) -> None:
        job.task.function = plan.function
        if plan.alone:
            run = Run(plan.function, plan.body, job.task, self.functions, self.reports)
            generation.begin(LocalPlan(lambda _: self._begin_alone(run)), job.task)
            return
        fail, stuck = generation.send_release, generation.stop
        run = Run(plan.function, plan.body, job.task, self.functions, self.reports, fail, stuck)
        generation.call(job, plan, run, admitted=part, first=call.first)

    def _receive(self, generation: Generation, message: GangMessage) -> None:
        """Acts on a message from another rank. The reader of the links calls it."""
        if isinstance(message, Relay) and message.kind in (RelayKind.STORE, RelayKind.STORED):
            generation.store.receive(message)
        elif not isinstance(message, Release):
            self.gang_calls.receive(generation, message)
        elif not generation.release(message):
            # Refused before this rank had heard of it, or over.
            self.reports.of(message.operation_id).close()

    def _begin_alone(self, run: Run) -> None:
        run.queue()
        self._alone.add(run.begin)

    def _refuse_run(
        self, generation: Generation, membership: Membership, place: Place, error: BridgeError
    ) -> None:
        """Releases the members that wait for this rank in a call of a function that it refuses, in the calls' order."""
        # Also for who watches later: no task says that it has ended.
        self.reports.of(place.operation_id).close()
        reason = f"rank {place.rank} refused to call the function: {error}"

        def release() -> None:
            begun = self.functions.begun()
            generation.send_release(Release(place.group, place.operation_id, place.rank, reason, None, begun))

        membership.functions.add(release)

    def _note(self, task: Task) -> None:
        self.record.add(task)
        if self._metrics is not None:
            self._metrics.done(task)

    def _record(
        self, session_id: str, group: str, operation: Operation[Args], args: Args, done: Task
    ) -> None:
        if done.error is None:
            self.graphs.record(session_id, group, operation, args, done.outcome())

    def _expire_sessions(self) -> None:
        closed, due = self.refs.expire()
        for session_id in closed:
            self._forget_session(session_id)
        if due is not None:
            self._leases.set("next", due, self._expire_sessions)

    def _forget_session(self, session_id: str) -> None:
        self.graphs.forget(session_id)
        self.segments.forget(session_id)
        generation = self._generation
        if generation is not None:
            generation.cancel_session(session_id)

    def _current(self, wanted: int) -> Generation:
        generation = self._generation
        if generation is None:
            raise BridgeError.of(ErrorCode.NOT_FORMED, "no generation is formed on this rank").at(
                Place(rank=self.identity.rank)
            )
        if wanted and wanted != generation.number:
            raise _stale("the call is of another generation", str(generation.number), wanted)
        if generation.error is not None:
            reason = generation.error.failure
            raise BridgeError.of(ErrorCode.STALE_GENERATION, reason.message, ranks=reason.ranks)
        return generation

    def _place(self, generation: Generation) -> Place:
        return Place(rank=generation.rank, generation=generation.number)

    def _where(self) -> tuple[int, int]:
        generation = self._generation
        return (generation.rank, generation.number) if generation is not None else (self.identity.rank, 0)

    def _end_current(self, reason: str) -> None:
        if self._preparation is not None:
            self._preparation.abandon()
            self._preparation = None
        if self._generation is not None:
            _abort(self._generation, reason)


def _stale(message: str, expected: str, number: int) -> BridgeError:
    return BridgeError.of(ErrorCode.STALE_GENERATION, message, expected=expected, got=str(number))


def _abort(generation: Generation, reason: str) -> bool:
    ended = Ended(generation.rank, False, reason)
    message = f"generation {generation.number} was ended: {reason}"
    return generation.end(BridgeError.of(ErrorCode.ABORTED, message), ended)
