"""Calls of single ranks, begun and ended, with what they brought."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbridge import Gang, Outcome, Pending, RankBridgeError
from rankbridge._plan.functions import Arguments
from rankbridge._plan.operations import shares
from rankbridge.harness.fills import for_rank
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.tensors import Tensors
from rankbridge.v1 import options_pb2 as pb

PATIENCE_S = 5.0
"""How much longer than its deadline a call is waited for."""


@dataclass
class Called:
    """A call of one rank.

    Attributes:
        rank: Rank in the gang.
        operation: Its name.
        group: Name of its group.
        options: Arguments, by their names in the proto.
        given: Positional argument, if the operation has one.
        brought: The same, with elements in the place of refs.
        names: Tensors that it takes, which change if it is in place.
        result_name: Name of what it gives. Empty: none.
        timeout: Of the call, in seconds.
        outcome: How it has ended. None: it has not.
        took: Seconds from the begin of the step to its end.
    """

    rank: int
    operation: str
    group: str
    options: dict[str, Any]
    given: tuple[Any, ...]
    brought: Any
    names: tuple[str, ...]
    result_name: str
    timeout: float
    operation_id: str | None = None
    pending: Pending[Any] | None = None
    outcome: Outcome[Any] | None = None
    took: float = 0.0

    def begin(self, gang: Gang) -> None:
        """Sends it. What the client refuses is its outcome."""
        options = dict(self.options)
        if self.operation_id is not None:
            options["operation_id"] = self.operation_id
        try:
            self.pending = gang[self.rank].start(
                self.operation, *self.given, **options, group=self.group, timeout=self.timeout
            )
        except RankBridgeError as error:
            self.outcome = Outcome(rank=self.rank, error=error)

    def is_answered(self) -> bool:
        """Whether it has ended, which may be before its outcome is taken."""
        return self.outcome is not None or (self.pending is not None and self.pending.done())

    def end(self, started: float) -> None:
        """Waits for its end, which comes: every call has a deadline."""
        if self.outcome is None and self.pending is not None:
            try:
                self.outcome = self.pending.outcome(self.timeout + PATIENCE_S)
            except TimeoutError as error:
                self.pending.cancel()
                self.outcome = Outcome(rank=self.rank, error=RankBridgeError(str(error), indefinite=True))
        self.took = time.monotonic() - started


@dataclass
class Agenda:
    """What one rank is called for, in order.

    Attributes:
        calls: The calls.
        delay: Seconds before the first.
        at_once: None waits for the one before.
    """

    calls: list[Called]
    delay: float = 0.0
    at_once: bool = False


@dataclass
class Begun:
    """Calls that go on.

    Attributes:
        started: When, of `time.monotonic`.
        calls: All of them.
    """

    started: float
    calls: list[Called]
    _threads: list[threading.Thread] = field(default_factory=list)

    def ended(self) -> list[Called]:
        """Waits for the end of all calls."""
        for thread in self._threads:
            thread.join()
        for call in self.calls:
            if call.outcome is None:
                call.end(self.started)
        return self.calls

    @property
    def took(self) -> float:
        """Seconds from the begin to the end of the last."""
        return max((it.took for it in self.calls), default=0.0)


def begin(gang: Gang, agendas: Sequence[Agenda]) -> Begun:
    """Begins the calls of all ranks."""
    begun = Begun(time.monotonic(), [it for agenda in agendas for it in agenda.calls])
    for agenda in agendas:
        if agenda.delay == 0 and (agenda.at_once or len(agenda.calls) == 1):
            for call in agenda.calls:
                call.begin(gang)
        else:
            # Of this context, which has the session.
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=context.run, args=(_in_order, gang, agenda, begun.started), daemon=True
            )
            begun._threads.append(thread)
            thread.start()
    return begun


def _in_order(gang: Gang, agenda: Agenda, started: float) -> None:
    time.sleep(agenda.delay)
    for call in agenda.calls:
        call.begin(gang)
        if not agenda.at_once:
            call.end(started)


def of_members(
    step: Mapping[str, Any], members: Sequence[int], tensors: Tensors, timeout: float, operation_id: str
) -> list[Called]:
    """Makes the calls of a step on all members of a group, but for those that are absent.

    Raises:
        LookupError: A rank has not the tensor that it should bring.
    """
    declared = DECLARED[step["call"]]
    base = {name: it for name, it in step.items() if name in declared.of_all}
    brought = {name: it for name, it in base.items() if name in _WORDS}
    arguments = {name: it for name, it in base.items() if name not in _WORDS}
    each = shares(step["call"], arguments, len(members))
    absent = set(step.get("absent", ()))
    calls = []
    for rank, own in zip(members, each, strict=True):
        if rank not in absent:
            words = {**brought, **own, **step.get("but", {}).get(str(rank), {})}
            calls.append(_called(rank, step, words, tensors, timeout))
            calls[-1].operation_id = operation_id
    return calls


def of_one(call: Mapping[str, Any], tensors: Tensors, timeout: float) -> Called:
    """Makes one call of one rank.

    Raises:
        LookupError: The rank has not the tensor that it should bring.
    """
    words = {name: it for name, it in call.items() if name in DECLARED[call["call"]].of_one}
    return _called(int(call["rank"]), call, words, tensors, timeout)


_WORDS = ("of", "value", "values", "tensors", "into", "dtype", "shape", "args", "named")


def _called(
    rank: int, step: Mapping[str, Any], words: Mapping[str, Any], tensors: Tensors, timeout: float
) -> Called:
    declared = DECLARED[step["call"]]
    words = for_rank(dict(words), rank)
    options = {name: it for name, it in words.items() if name not in _WORDS}
    given: tuple[Any, ...] = ()
    brought: Any = None
    names: tuple[str, ...] = ()
    match declared.brings:
        case pb.BRINGS_REF:
            names = (words["of"],)
            given, brought = (tensors.ref(words["of"], rank),), tensors.seen(words["of"], rank)
        case pb.BRINGS_VALUE | pb.BRINGS_NUMBER:
            given, brought = (words["value"],), words["value"]
        case pb.BRINGS_SOURCE_VALUE:
            given, brought = (words.get("value"),), words.get("value")
        case pb.BRINGS_SOURCE_VALUES:
            given, brought = (words.get("values"),), words.get("values")
        case pb.BRINGS_SOURCE_DICT | pb.BRINGS_DICT:
            named = words.get("tensors")
            if named is not None:
                given = ({key: tensors.ref(name, rank) for key, name in named.items()},)
                brought = {key: tensors.seen(name, rank) for key, name in named.items()}
        case pb.BRINGS_ARGUMENTS:
            refs = {key: tensors.ref(name, rank) for key, name in words.get("tensors", {}).items()}
            names = tuple(words.get("tensors", {}).values())
            given = (Arguments(tuple(words.get("args", ())), {**words.get("named", {}), **refs}),)
        case pb.BRINGS_EXPECTED:
            if "into" in words:
                names = (words["into"],)
                options["expected"] = tensors.ref(words["into"], rank)
            elif "dtype" in words:
                options["expected"] = (words["dtype"], words.get("shape", []))
    return Called(
        rank=rank,
        operation=step["call"],
        group=step.get("group", "world"),
        options=options,
        given=given,
        brought=brought,
        names=names,
        result_name=step.get("as", ""),
        timeout=timeout,
    )
