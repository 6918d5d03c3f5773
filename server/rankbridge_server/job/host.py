"""The user's functions on one rank: they are checked, called, and prepared for each generation."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from ..core.errors import BridgeError, ErrorCode
from ..core.functions.functions import Body, FunctionDescription, unknown_function
from ..core.functions.raised import raised_by
from ..core.functions.run import Run
from ..core.generation import Generation
from ..core.operations.operation import Site
from ..core.operations.outcome import Outcome, Packed, TensorDict
from ..core.refs.refs import Cell
from ..core.refs.tensors import Tensors
from ..core.task import late
from .context import Context
from .registry import BUILT_IN, Registry
from .running_calls import RunningCalls
from .signature import Signature
from .state import broadcast
from .values import Written, parsed, read

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from .torch_world import TorchWorld

ENTER_TIMEOUT_S = 30.0
MAKING_S = 0.25
"""How long the making of a group waits for others that are about to come."""


class FunctionHost:
    """Implements `core.functions.Functions`. Safe to call from any thread.

    `world`: what torch.distributed is on this rank; None: the backend has no process groups.
    """

    def __init__(self, registry: Registry, tensors: Tensors, world: TorchWorld | None) -> None:
        self.new_ranks: tuple[int, ...] = ()
        self._registry = registry
        self._signatures: dict[str, Signature] = {}
        self._tensors = tensors
        self._world = world
        self._ready: tuple[int, Future[None]] = 0, Future()
        # Functions that run, and the preparation for a generation while it runs.
        self._running = RunningCalls(leaves=world is not None)
        self._preparing = ""
        # Whether this process has gone through a forming with its hooks: whether it has the state that others have.
        self._has_state = False

    def describe(self) -> Sequence[FunctionDescription]:
        """All functions, by name."""
        names = sorted(it for it in self._registry.functions if not it.startswith(BUILT_IN))
        return [it.describe() for it in map(self._signature, names) if it is not None]

    def bind(self, site: Site, function: str, names: Sequence[str], values: Sequence[Packed]) -> Body:
        """Reads the arguments and binds them to the function's parameters."""
        signature = self._signature(function)
        if signature is None:
            raise unknown_function(function, [it.name for it in self.describe()])
        messages, cells = [parsed(it.data) for it in values], dict[str, Cell]()

        def find(ref_id: str) -> object:
            cell = cells[ref_id] = site.cell(ref_id)
            return cell.tensor

        def bound(find: Callable[[str], object]) -> inspect.BoundArguments:
            given = [read(it, self._tensors, find) for it in messages]
            by_place = names.count("")
            return signature.arguments(
                given[:by_place], dict(zip(names[by_place:], given[by_place:], strict=True))
            )

        now = bound(find)

        def call(run: Run) -> Callable[[], Outcome]:
            # A ref's tensor is the one that it has when the function begins.
            its = bound(lambda ref_id: cells[ref_id].tensor) if cells else now
            return self._call(site, signature, its, run)

        return call

    def _signature(self, name: str) -> Signature | None:
        """That of a function, made once for each that has had the name."""
        function = self._registry.functions.get(name)
        known = self._signatures.get(name)
        if function is not None and (known is None or known.function is not function):
            known = self._signatures[name] = Signature(name, function)
        return None if function is None else known

    def formed(self, generation: Generation) -> None:
        """Makes torch.distributed's groups, and calls the hooks, on a thread of its own."""
        ready: Future[None] = Future()
        self._ready = generation.number, ready
        threading.Thread(target=self._enter, args=(generation, ready), name="entering", daemon=True).start()

    def begun(self) -> Mapping[str, int]:
        """How many collectives this rank has begun in each torch.distributed group."""
        return self._world.counts() if self._world is not None else {}

    def waits(self, run: Run, begun: Mapping[str, int]) -> bool:
        """Whether this rank has begun a collective that the failed rank will not begin, or makes a group, and waits."""
        if self._world is not None and self._world.waited() > MAKING_S:
            return True
        return any(count > begun[group] for group, count in self.begun().items() if group in begun)

    def process_group(self, name: str, generation: Generation) -> ProcessGroup:
        """Torch's process group of a named group. See `Context.group`."""
        if self._world is None:
            raise BridgeError.of(
                ErrorCode.UNSUPPORTED_OPERATION,
                "this backend has no process groups of torch.distributed",
                expected="the backend gloo or nccl",
            )
        return self._world.group(name, generation)

    def broadcast_state(self, state: dict[str, Any], version: int, is_new: bool) -> dict[str, Any]:
        """Brings a state to ranks that have it not. See `Context.broadcast_state`."""
        return broadcast(state, version, is_new, self._tensors)

    def _call(
        self, site: Site, signature: Signature, bound: inspect.BoundArguments, run: Run
    ) -> Callable[[], Outcome]:
        self._await_ready(site.generation, run)
        context = Context(
            self, site.generation, run.task.place.operation_id, lambda: run.cancelled, run.report
        )

        def check() -> None:
            if self._ready[0] != site.generation.number:
                raise _superseded()

        # Counted, so that torch.distributed's groups are not changed under it.
        self._running.begin(check)
        try:
            result = signature.call(bound, context)
            if inspect.isgenerator(result):
                result = _exhausted(result, context)
            return _nothing if result is None else _committing(site, Written(result, self._tensors.copied))
        except Exception as error:
            # A loss is no failure of the function, also where the engine has noticed it before the links.
            self._explain(error)
            raise
        finally:
            self._running.end()

    def _explain(self, error: BaseException) -> None:
        if self._world is not None:
            self._world.explain(error)

    def _await_ready(self, generation: Generation, run: Run) -> None:
        number, ready = self._ready
        if number != generation.number:
            raise _superseded()
        if ready.done():
            ready.result()
            return
        try:
            ready.result(max(0.0, run.task.remaining))
        except FutureTimeoutError:
            what = f"the rank is still being prepared for functions: {self._preparing}"
            raise late(what, indefinite=False) from None

    def _enter(self, generation: Generation, ready: Future[None]) -> None:
        try:
            self._prepare(generation)
        except BaseException as error:
            self._explain(error)
            failure = error if isinstance(error, BridgeError) else self._hook_failed(generation, error)
            ready.set_exception(failure)
        else:
            self._has_state = True
            ready.set_result(None)

    def _prepare(self, generation: Generation) -> None:
        def check() -> None:
            if generation.error is not None:
                raise BridgeError(generation.error.failure)

        self._preparing = "what was called before the generation was formed runs"
        self._running.begin_alone(generation.rank, check)
        try:
            if self._world is not None:
                self._preparing = "torch.distributed's groups are being made"
                self._world.enter(generation)
            self._preparing = "not all ranks have said whether they have state"
            self.new_ranks = self._new_ranks(generation)
            self._preparing = "its hooks run"
            for hook in self._registry.on_formed:
                hook(Context(self, generation))
        finally:
            self._running.end()

    def _new_ranks(self, generation: Generation) -> tuple[int, ...]:
        """The ranks that have no state yet. The last one to say whether it has says it of all."""
        store, ranks = generation.store, range(generation.world_size)
        if not self._has_state:
            store.set(f"rankbridge/new/{generation.rank}", b"")
        if store.add("rankbridge/said", 1) == len(ranks):
            new = [str(rank) for rank in ranks if store.check([f"rankbridge/new/{rank}"])]
            store.set("rankbridge/new", " ".join(new).encode())
        return tuple(map(int, store.get("rankbridge/new", ENTER_TIMEOUT_S).split()))

    @staticmethod
    def _hook_failed(generation: Generation, error: BaseException) -> BridgeError:
        raised = raised_by(error, generation.rank)
        return BridgeError.of(
            ErrorCode.FUNCTION_FAILED,
            f"rank {generation.rank} cannot call functions: a hook of its forming raised {raised}",
            raised=raised,
        )


def _superseded() -> BridgeError:
    return BridgeError.of(ErrorCode.STALE_GENERATION, "another generation was formed meanwhile")


def _nothing() -> Outcome:
    return None


def _exhausted(generator: Iterator[object], context: Context) -> Any:
    """Reports what a generator yields; returns what it returns."""
    try:
        while True:
            context.report(next(generator))
            context.check()
    except StopIteration as end:
        return end.value


def _committing(site: Site, written: Written) -> Callable[[], Outcome]:
    """What commits a result: its tensors become refs."""
    if not written.tensors:
        packed = Packed(written.value.SerializeToString())
        return lambda: packed
    slots = []
    try:
        for spec in written.specs:
            slots.append(site.reserve(spec))
    except BridgeError:
        for slot in slots:
            slot.give_back()
        raise
    skeleton = written.value.SerializeToString()

    def commit() -> Outcome:
        refs = tuple(slot.fill(it) for slot, it in zip(slots, written.tensors, strict=True))
        return TensorDict(skeleton, refs)

    return commit
