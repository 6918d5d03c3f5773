"""A gang within the test's process: fake backend, and links over socket pairs unless the test gives others."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.support.tasks import error_of

from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.coordinator import Backend, GroupDescription
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.groups.forming import Formed, form
from rankbridge_server.core.groups.preparation import RankAddress
from rankbridge_server.core.groups.regrouping import PeerState
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.links import LinkMaker
from rankbridge_server.core.operations.operation import Operation
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.rank import Identity, Rank, State
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import Arange, Full, Init, TensorSpec
from rankbridge_server.core.task import Call, Task
from rankbridge_server.links.pairs import PairLinkMaker

Args = TypeVar("Args")

PATIENCE_S = 60.0
"""Bounds hangs and nothing else."""


class LocalPeer:
    """A rank of this process, as forming reaches it."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank

    def describe(self, timeout: float) -> PeerState:
        it = self.rank.describe()
        was_formed = it.state in (State.FORMED, State.OVER)
        groups = tuple(GroupDescription(group.name, group.ranks) for group in it.groups)
        return PeerState(it.seen, it.number, it.rank if was_formed else None, groups)

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        return self.rank.prepare(number, rank, world_size, groups)

    def commit(self, number: int, addresses: Sequence[RankAddress], secret: bytes, timeout: float) -> None:
        self.rank.commit(number, addresses, secret, timeout)

    def abort(self, number: int, reason: str, timeout: float) -> None:
        self.rank.abort(number, reason)


class LocalGang:
    """`size` ranks, formed."""

    def __init__(
        self,
        size: int,
        limits: Limits | None = None,
        data_timeout: float = 5.0,
        links: Callable[[int], LinkMaker] | None = None,
        hosts: Sequence[str] | None = None,
        backends: Sequence[Backend] = (),
    ) -> None:
        """`hosts`: what each rank takes its host for; all one unless told. `backends`: of each rank; fake ones."""
        hub, pairs = FakeHub(), PairLinkMaker()
        self.ranks = [
            Rank(
                Identity(rank=rank, world_size=size, local_rank=rank),
                backends[rank] if backends else FakeBackend(hub),
                links(rank) if links else pairs,
                limits=limits or Limits(),
                data_timeout=data_timeout,
                host_id=hosts[rank] if hosts else None,
            )
            for rank in range(size)
        ]
        # Groups on real engines take as long as the machine does.
        self._form_timeout = 60.0 if backends else 10.0
        self.form()

    def form(self, groups: Sequence[GroupDescription] = ()) -> Formed:
        """Form the next generation."""
        return form([LocalPeer(rank) for rank in self.ranks], groups, timeout=self._form_timeout)

    def full(self, value: float, shape: tuple[int, ...] = (2,), dtype: Dtype = Dtype.FLOAT32) -> list[Ref]:
        """A tensor of one value on each rank."""
        return [self.full_on(rank, value, shape, dtype) for rank in range(len(self.ranks))]

    def full_on(
        self, rank: int, value: float, shape: tuple[int, ...] = (2,), dtype: Dtype = Dtype.FLOAT32
    ) -> Ref:
        """A tensor of one value on one rank."""
        return self._make(rank, TensorSpec(dtype, shape, self._device(rank)), Full(value))

    def arange_on(self, rank: int, start: float, shape: tuple[int, ...]) -> Ref:
        """A float32 tensor of start, start + 1, ... on one rank."""
        return self._make(rank, TensorSpec(Dtype.FLOAT32, shape, self._device(rank)), Arange(start, 1))

    def floats(self, ref: Ref) -> list[float]:
        """The elements of a float32 tensor."""
        rank = self.ranks[ref.rank]
        cell = rank.refs.find(ref.session_id, ref.id)
        return list(rank.backend.tensors.read(cell.tensor).cast("f"))

    def _device(self, rank: int) -> str:
        return self.ranks[rank].backend.tensors.device

    def _make(self, rank: int, spec: TensorSpec, init: Init) -> Ref:
        it = self.ranks[rank]
        with it.refs.reserved("", spec) as slot:
            return slot.fill(it.backend.tensors.create(spec, init))

    def run(
        self, operation: Operation[Args], args: Sequence[Args | None], **call: Any
    ) -> list[Outcome | Exception]:
        """Call on every rank that has arguments; each one's outcome or error. One id unless told otherwise."""
        tasks = self._submitted(operation, args, **call)
        return [task if isinstance(task, Exception) else _outcome(task.wait) for task in tasks]

    def missed(
        self, operation: Operation[Args], args: Sequence[Args | None], **call: Any
    ) -> list[Exception | None]:
        """As `run`, for a timeout that is to pass: each one's error, as the leader rules.

        Nobody waits: a waiter would withdraw a call whose lane has not begun by the timeout, as on a busy machine.
        """
        tasks = self._submitted(operation, args, **call)
        return [task if isinstance(task, Exception) else error_of(task, PATIENCE_S) for task in tasks]

    def _submitted(
        self, operation: Operation[Args], args: Sequence[Args | None], **call: Any
    ) -> list[Task | Exception]:
        call.setdefault("operation_id", uuid.uuid4().hex)
        tasks: list[Task | Exception] = []
        for rank, mine in zip(self.ranks, args, strict=True):
            if mine is None:
                continue
            try:
                tasks.append(rank.submit(operation, mine, a_call(**call)))
            except Exception as error:
                tasks.append(error)
        return tasks


def a_call(
    group: str = "",
    operation_id: str = "",
    timeout: float = 5.0,
    session_id: str = "",
    generation: int = 0,
) -> Call:
    """A call with what tests leave out."""
    return Call(group, operation_id, timeout, session_id, generation)


def _outcome(wait: Any) -> Outcome | Exception:
    try:
        outcome: Outcome = wait()
        return outcome
    except Exception as error:
        return error
