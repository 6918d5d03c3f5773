"""One forming of the gang, as one rank sees it: its groups, its pending operations, and its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from .activity import Activity, Doing
from .admission.admission import Arrival, Notice, Ruling, Verdict
from .admission.matching import Match, Post
from .admission.verdicts import disagreement, event_of, straggler_of, unmatched
from .coordinator import Backend
from .errors import BridgeError, ErrorCode, Failure, Phase, Place, RankDetail, RankState, unknown_group
from .events import EventLog, Formed, Kind, Straggler
from .functions.raised import place_of
from .functions.run import Run
from .gang_calls.messages import Release, Report
from .groups.group import WORLD, Group, GroupView, Membership, close_groups, close_when_idle
from .hold.holds import Held, Holds
from .hold.operations import hold_after, hold_before
from .links import Ended, Links
from .operations.operation import Entry, FunctionPlan, Job, LocalPlan, Meeting, Plan, Transfer
from .queues.view import QueueView
from .store import GenerationStore
from .task import VERDICT_GRACE, Task, cancelled, failure_of

LOSS_GRACE_S = 0.1
"""How long a backend's failure waits for the links to report a lost rank."""


class Generation:
    """A formed generation. Safe to call from any thread.

    `data_timeout`: seconds that the backend may take for one operation, whatever the caller's timeout is. `lost`:
    called when the generation ends because a rank was lost. `events`: the log for its events. `script`: says at which
    line the script of the job is whose process this is; empty: it is no job's. `holds`: the rank's breakpoints.
    """

    def __init__(
        self,
        number: int,
        rank: int,
        world_size: int,
        backend: Backend,
        links: Links,
        data_timeout: float,
        lost: Callable[[], object],
        events: EventLog,
        script: Callable[[], str],
        holds: Holds,
    ) -> None:
        self.number = number
        self.rank = rank
        self.world_size = world_size
        self._backend = backend
        self.links = links
        self._data_timeout = data_timeout
        self._lost = lost
        self._events = events
        self._script = script
        self._holds = holds
        self._announced = False
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._groups: dict[str, Group] = {}
        self._pending: set[Task] = set()
        self._idle_since = time.monotonic()
        self._error: BridgeError | None = None
        self.store = GenerationStore(self)
        self._waiters: dict[object, Callable[[BridgeError], None]] = {}
        self.regrouped: Callable[[], object] = lambda: None
        """Called when a group was added or removed."""
        self.over: Callable[[], object] = lambda: None
        """Called when the generation has ended, before its operations are answered. It must not block."""

    @property
    def error(self) -> BridgeError | None:
        """Why the generation has ended; None while it runs."""
        return self._error

    @property
    def pending(self) -> int:
        """The number of operations that were accepted and not answered yet."""
        return len(self._pending)

    def announce(self) -> None:
        """Adds the FORMED event; only after it does the generation's end add an event, too."""
        formed = Formed(self.world_size, tuple(self.views()))
        with self._lock:
            self._announced = True
            self._events.add(Kind.FORMED, self.rank, self.number, formed)
            if self._error is not None:
                self._publish_end(self._error)

    def add_notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        """Adds the event of a notice from a group that this rank leads."""
        kind, detail = event_of(notice, group, ranks, self.number)
        self._events.add(kind, self.rank, self.number, detail)

    def get(self, name: str) -> Group | None:
        """The group of that name, or None. A group that has other members only may have ended."""
        return self._groups.get(name)

    def find(self, name: str) -> Group:
        """The group of that name; an empty one is "world". Raises UNKNOWN_GROUP."""
        group = self._groups.get(name or WORLD)
        if group is None:
            raise unknown_group(name)
        return group

    def views(self) -> Sequence[GroupView]:
        """All groups that this rank knows, sorted by name."""
        with self._lock:
            groups = sorted(self._groups.values(), key=lambda group: group.name)
        return [group.view(self._backend.name, self.number) for group in groups]

    def queues(self) -> Sequence[QueueView]:
        """All queues of this rank, sorted by group and name."""
        with self._lock:
            groups = sorted(self._groups.values(), key=lambda group: group.name)
        members = [group.membership for group in groups if group.membership is not None]
        return [view for member in members for view in member.queues.views()]

    def install(self, group: Group) -> None:
        """Adds a formed group, whose links exist. It replaces a group of the same name that has ended elsewhere.

        Raises the error of an ended generation, and closes the group then.
        """
        with self._lock:
            error = self._error
            if error is None:
                self._groups[group.name] = group
        if error is not None:
            close_groups([group], error)
            raise BridgeError(error.failure)
        if group.membership is not None:
            group.membership.lane.wait_with(self.links.group(group.name))
        self.regrouped()

    def remove(self, name: str) -> None:
        """Removes a group, and closes it when its lane has done what is queued there."""
        with self._lock:
            group = self._groups.pop(name)
        self.links.remove_group(name)
        ended = BridgeError.of(ErrorCode.ABORTED, f"group {name!r} has ended")
        close_when_idle(group, ended, self._data_timeout)
        self.regrouped()

    def start(self, job: Job, plan: Plan, first: bool = False) -> None:
        """Queues an operation on its group's lane, as `Lane.add` does. Raises the error of an ended generation."""
        with self._lock:
            if self._error is not None:
                raise BridgeError(self._error.failure)
            if self._groups.get(job.group.name) is not job.group:
                raise unknown_group(job.group.name)
            self._pending.add(job.task)
            # Under the lock: the lane is closed after it is released, and a job added after that would never run.
            job.membership.lane.add(lambda: self._run(job, plan), first)
        job.task.then(self._answered)

    def refuse(self, group: Group, membership: Membership, failure: Failure) -> None:
        """Reports to the group's leader, in the lane's order, that this rank refuses an operation, and why."""
        report = Report.of_refusal(group.name, membership.rank_in_group, failure)
        membership.lane.add(lambda: self.report(report))

    def report(self, report: Report) -> None:
        """Sends a report to the group's leader. Does nothing when the group has ended: nobody waits for it."""
        with suppress(ConnectionError):
            self.links.group(report.group).report(report)

    def begin(self, plan: LocalPlan, task: Task) -> None:
        """Begins an operation that needs no other member. Raises BridgeError, or the generation's error."""
        self._accept(task)
        plan.begin(task)

    def post(self, job: Job, transfer: Transfer) -> None:
        """Posts a point-to-point operation to the group's leader. Raises the error of a generation that is over."""
        self._accept(job.task)
        self.exchange(job, transfer)

    def exchange(self, job: Job, transfer: Transfer) -> None:
        """Posts a transfer that is no pending operation: the end of the generation does not answer its task."""
        task = job.task
        number = job.membership.next_post()
        post = transfer.post._replace(number=number, timeout=max(task.remaining, 0.001), site=task.site)
        if self._error is not None:
            raise BridgeError(self._error.failure)
        task.contract = str(post)
        task.enter(Phase.ADMISSION)
        try:
            links = self.links.group(job.group.name)
            links.post(post, lambda match: self._on_match(job, transfer, post, match))
        except OSError as error:
            task.fail(self._error or BridgeError.of(ErrorCode.ABORTED, str(error)))
            transfer.abandon()
        else:
            task.arrived(lambda: links.recall(number))

    def call(self, job: Job, plan: FunctionPlan, run: Run, *, admitted: bool, first: bool) -> None:
        """Queues a call of a function on its group's lane, as `start` does. `admitted`: the leader has called it."""

        def enter() -> None:
            try:
                if self.get(job.group.name) is not job.group:
                    raise unknown_group(job.group.name)
                if self._holds.active:
                    hold_before(self._holds, job, plan.contract)
                job.task.contract = plan.contract
                if not admitted:
                    job.task.sequence = job.membership.sequence
                is_here = job.task.enter(Phase.ADMISSION)
                if not admitted:
                    if not is_here:
                        return
                    self._agree(job, plan.contract, b"")
                run.queue()
            except Exception as error:
                self._failed(job, error)
                if not admitted:
                    return
            # One that the leader has called is begun also if it is answered already: others may wait for it.
            job.membership.functions.add(run.begin)

        with self._lock:
            if self._error is not None:
                raise BridgeError(self._error.failure)
            self._pending.add(job.task)
            run_id = job.task.place.operation_id
            if run_id:
                job.membership.runs[run_id] = run
            job.membership.lane.add(enter, first)

        def answered(task: Task) -> None:
            self._answered(task)
            job.membership.forget_run(run_id)

        job.task.then(answered)

    def send_release(self, release: Release) -> None:
        """Tells the other members of a group that a call of a function has failed here, or is to end."""
        with suppress(OSError):
            self.links.group(release.group).release(release)

    def release(self, release: Release) -> bool:
        """Acts on the failure of a call on another member, or on its end. Returns whether the call is here."""
        group = self.get(release.group)
        run = group.membership.runs.get(release.operation_id) if group and group.membership else None
        if run is not None:
            run.release(release)
        return run is not None

    def stop(self, release: Release) -> None:
        """Ends the generation, because a function here waits for a rank on which it has failed."""
        self.lost(Ended(release.rank or 0, False, release.reason, ErrorCode.FUNCTION_FAILED, release.raised))

    def await_end(self, key: object, ended: Callable[[BridgeError], None]) -> None:
        """Calls `ended` once, with the error, when the generation ends. Raises the error if it has ended already."""
        with self._lock:
            if self._error is not None:
                raise BridgeError(self._error.failure)
            self._waiters[key] = ended

    def forget_end(self, key: object) -> None:
        """Cancels `await_end` for a key."""
        with self._lock:
            self._waiters.pop(key, None)

    def pending_tasks(self) -> list[Task]:
        """The operations that were accepted and not answered yet, the oldest first."""
        return sorted(self._pending.copy(), key=lambda task: task.began)

    def activity(self, group: str) -> Activity:
        """What this rank does while members of a group wait for it. Takes no lock, and never waits."""
        if self._holds.active and (held := self._holds.held()):
            return _held_at(min(held, key=lambda it: it.call.group != group))
        pending = self._pending.copy()
        if not pending:
            seconds = time.monotonic() - self._idle_since
            return Activity(doing=Doing.IDLE, seconds=seconds, where=self._script())
        # One that is queued waits for what is before it.
        task = min(pending, key=lambda it: (it.phase is Phase.CHECK, it.place.group != group, it.began))
        began = task.entered or task.began
        running = Doing.FUNCTION if task.function else Doing.RUNNING
        return Activity(
            doing=running if task.phase is Phase.DATA else Doing.WAITING,
            seconds=time.monotonic() - began,
            group=task.place.group,
            operation=task.function or task.place.operation,
            operation_id=task.place.operation_id,
            site=task.site,
            where=place_of(task.thread) if task.function else "",
        )

    def waiting(self) -> list[Straggler]:
        """The admissions that members keep waiting, of the groups that this rank leads."""
        found = []
        for group in list(self._groups.values()):
            with suppress(ConnectionError):
                if (notice := self.links.group(group.name).waiting()) is not None:
                    found.append(straggler_of(notice, group.name, group.description.ranks))
        return found

    def pending_of(self, guest: str) -> int:
        """The number of pending operations of a guest's sessions."""
        return sum(task.session_id.startswith(guest) for task in list(self._pending))

    def groups_of(self, guest: str) -> int:
        """The number of groups that a guest has made."""
        return sum(group.guest == guest for group in list(self._groups.values()))

    def cancel_session(self, session_id: str) -> None:
        """Withdraws the operations of a session that were not admitted yet."""
        for task in [task for task in list(self._pending) if task.session_id == session_id]:
            task.cancel(f"session {session_id!r} was closed")

    def end(self, error: BridgeError, ended: Ended) -> bool:
        """Ends the generation: every pending operation gets the error at once. Returns False if it had ended before."""
        with self._lock:
            if self._error is not None:
                return False
            self._error = error
            self._ended.notify_all()
            if self._announced:
                self._publish_end(error)
            pending = list(self._pending)
            groups = list(self._groups.values())
            waiters, self._waiters = list(self._waiters.values()), {}
        self.over()
        self._holds.end_generation()
        for task in pending:
            task.lose(error.failure)
        for waiter in waiters:
            waiter(error)
        self.links.end(ended)
        close_groups(groups, error)
        return True

    def lost(self, ended: Ended) -> None:
        """Ends the generation because its links have ended."""
        code = ended.code or (ErrorCode.PEER_LOST if ended.lost else ErrorCode.ABORTED)
        state = RankState.LOST if ended.lost else RankState.FAILED
        detail = RankDetail(rank=ended.rank, rank_in_group=ended.rank, state=state, detail=ended.reason)
        what = f"rank {ended.rank} is lost" if ended.lost else "the generation was ended"
        message = f"generation {self.number} is over: {what}: {ended.reason}"
        error = BridgeError.of(code, message, ranks=(detail,), raised=ended.raised)
        if self.end(error, ended) and ended.lost:
            self._lost()

    def _publish_end(self, error: BridgeError) -> None:
        place = Place(rank=self.rank, generation=self.number)
        self._events.add(Kind.OVER, self.rank, self.number, error.at(place).failure)

    def _accept(self, task: Task) -> None:
        with self._lock:
            if self._error is not None:
                raise BridgeError(self._error.failure)
            self._pending.add(task)
        task.then(self._answered)

    def _answered(self, task: Task) -> None:
        self._pending.discard(task)
        self._idle_since = time.monotonic()

    def _run(self, job: Job, plan: Plan) -> None:
        try:
            # A job may have waited behind the operation that ended its group.
            if self.get(job.group.name) is not job.group:
                raise unknown_group(job.group.name)
            contract = f"{job.operation} {plan.terms}".rstrip()
            if self._holds.active:
                hold_before(self._holds, job, contract)
            # Before it is announced: who reads the record from outside sees it as it waits.
            job.task.contract = contract
            job.task.sequence = job.membership.sequence
            if job.task.enter(Phase.ADMISSION):
                self._enter(job, plan)
        except Exception as error:
            self._failed(job, error)
        finally:
            plan.abandon()
            if self._holds.active:
                hold_after(self._holds, job)

    def _on_match(self, job: Job, transfer: Transfer, post: Post, match: Match | None) -> None:
        """Acts on the leader's match; None: the group has ended. The reader of the links calls it: it must be quick."""
        if match is not None and match.ruling is Ruling.GO:
            # Even if the caller has got an error meanwhile: the other end moves the data.
            job.task.enter(Phase.DATA)
            met = match
            if job.membership.courier.add(lambda: self._transfer(job, transfer, met)):
                return
            match = None
        job.task.fail(unmatched(match, post, job.operation, job.group, job.membership.rank_in_group))
        transfer.abandon()

    def _transfer(self, job: Job, transfer: Transfer, match: Match) -> None:
        coordinator = job.membership.coordinator
        try:
            meeting = Meeting(coordinator, self._data_timeout, match.transfer, match.peer, match.payload)
            job.task.commit(transfer.run(meeting))
        except Exception as error:
            self._failed(job, error)
        finally:
            transfer.abandon()

    def _failed(self, job: Job, error: Exception) -> None:
        """Answers with an error. A failure of the backend or of rankbridge itself ends the generation, too."""
        failure = failure_of(error)
        if failure.code is ErrorCode.BACKEND_FAILED and self._is_over_soon():
            # A transfer of `exchange` is not pending, so the end of the generation did not answer it.
            job.task.lose(self._over().failure)
            return
        job.task.fail(BridgeError(failure))
        is_fault = failure.code is ErrorCode.BACKEND_FAILED or not isinstance(error, BridgeError)
        if is_fault and self.get(job.group.name) is job.group:
            reason = str(error) if isinstance(error, BridgeError) else failure.message
            ended = Ended(self.rank, False, f"{job.operation} on group {job.group.name!r} failed: {reason}")
            message = f"generation {self.number} is over: {ended.reason}"
            self.end(BridgeError.of(ErrorCode.BACKEND_FAILED, message), ended)

    def _enter(self, job: Job, plan: Plan) -> None:
        payloads = self._agree(job, job.task.contract, plan.payload())
        if not job.task.enter(Phase.DATA):
            return
        entry = Entry(
            coordinator=job.membership.coordinator,
            timeout=self._data_timeout,
            payloads=payloads,
            agree=lambda contract, payload: self._agree(job, contract, payload),
        )
        job.task.commit(plan.run(entry))

    def _agree(self, job: Job, contract: str, payload: bytes) -> Sequence[bytes]:
        task, membership = job.task, job.membership
        timeout = max(task.remaining, 0.001)
        arrival = Arrival(membership.sequence, task.place.operation_id, contract, timeout, payload, task.site)
        verdict = self._verdict(job, arrival)
        if verdict.ruling is Ruling.GO:
            membership.sequence += 1
            return verdict.payloads or (b"",) * len(job.group.description.ranks)
        if verdict.ruling is Ruling.WITHDRAWN:
            raise cancelled("the controller asked for it")
        raise disagreement(verdict, arrival, job.group.name, job.group.description.ranks)

    def _verdict(self, job: Job, arrival: Arrival) -> Verdict:
        def arrived() -> None:
            job.task.arrived(lambda: links.withdraw(arrival))

        try:
            links = self.links.group(job.group.name)
            verdict = links.admit(arrival, arrived, arrival.timeout + VERDICT_GRACE)
            if verdict.ruling is Ruling.GO and (met := links.met()) is not None:
                job.task.waited_for += (met,)
            return verdict
        except TimeoutError:
            leader = job.group.description.ranks[0]
            self.lost(Ended(leader, True, f"no verdict from the leader of group {job.group.name!r} in time"))
            raise self._over() from None
        except OSError as error:
            raise (self._error or BridgeError.of(ErrorCode.PEER_LOST, str(error), indefinite=True)) from error

    def _is_over_soon(self) -> bool:
        """Whether the links end the generation: a backend fails before the links report which rank was lost."""
        with self._lock:
            return self._ended.wait_for(lambda: self._error is not None, LOSS_GRACE_S)

    def _over(self) -> BridgeError:
        return self._error or BridgeError.of(ErrorCode.INTERNAL, "the generation is not over")


def _held_at(held: Held) -> Activity:
    call = held.call
    return Activity(
        doing=Doing.HELD,
        seconds=time.time() - held.since,
        group=call.group,
        operation=call.operation,
        operation_id=call.operation_id,
        site=call.site,
    )
