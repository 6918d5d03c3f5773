"""What every operation is made of: a plan that was checked, and the entry into the backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, get_type_hints

from ..admission.matching import Post
from ..coordinator import Backend, Coordinator
from ..errors import BridgeError, ErrorCode, check_rank, invalid
from ..functions.functions import Body, Functions
from ..groups.group import Group, Membership
from ..refs.refs import Cell, Ref, Refill, RefStore, Slot
from ..refs.tensors import TensorSpec
from ..task import Task
from .outcome import Outcome

if TYPE_CHECKING:
    from ..generation import Generation
    from ..programs.cells import ProgramCells
    from ..programs.graphs import GraphStore

Args = TypeVar("Args")


class Entry(NamedTuple):
    """An operation that all members agreed on. `timeout`: seconds for the backend. `payloads`: by rank in group."""

    coordinator: Coordinator
    timeout: float
    payloads: Sequence[bytes]
    agree: Callable[[str, bytes], Sequence[bytes]]
    """Agree once more with all members, on a contract and with a payload; gives all payloads."""


class Plan(Protocol):
    """An operation that passed the checks of its own rank. `payload` and `run` are called on the lane."""

    @property
    def terms(self) -> str:
        """What all members must agree on, the operation's name apart: "dtype=float32 shape=[4] op=sum"."""

    def payload(self) -> bytes:
        """What this rank gives all others with its arrival."""

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Do it, in scratch memory; what is returned commits the result, and is quick.

        The caller may have got an error meanwhile; then it is not called.
        """

    def abandon(self) -> None:
        """Let go of what was set aside; called exactly once, also after `run`."""


class Job(NamedTuple):
    """An operation of a group: on its lane, or posted to its leader."""

    group: Group
    membership: Membership
    operation: str
    task: Task


@dataclass(frozen=True, slots=True)
class Meeting:
    """A send and a receive that have found each other, as one of the two members sees it.

    `number`: the same for both, unlike that of any other meeting under way. `peer`: the other's rank in the group.
    `payload`: the sender's. `timeout`: seconds for the backend.
    """

    coordinator: Coordinator
    timeout: float
    number: int
    peer: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Transfer:
    """One side of a point-to-point operation that passed the checks of its own rank. `post`: whom it is for, and what.

    The courier calls `run`, which moves the data, in scratch memory; what it returns commits the result, and is quick.
    `abandon` lets go of what was set aside; called exactly once, also after `run`.
    """

    post: Post
    run: Callable[[Meeting], Callable[[], Outcome]]
    abandon: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """An operation that needs nobody's consent, and passed the checks of its own rank.

    `begin` hands it to whoever does it, and answers the task. Never waits. Raises BridgeError; then it was not begun.
    """

    begin: Callable[[Task], None]


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """A call of a function of the user's that passed the checks of its own rank. `alone`: no other member calls it."""

    function: str
    body: Body
    alone: bool

    @property
    def contract(self) -> str:
        """What all members must agree on; their arguments may differ."""
        return f"call_function function={self.function}"


AnyPlan = Plan | Transfer | LocalPlan | FunctionPlan


@dataclass(frozen=True, slots=True)
class Operation(Generic[Args]):
    """One operation. `args`: the class of its arguments; `make_plan` checks them, on a backend that has it.

    `recorded`: graphs have it. `agreement`: whoever has been admitted has done it, and gives none. `led`: as a gang
    call it needs no admission: the leader has checked its own part before any member gets one.
    """

    name: str
    args: type[Args]
    make_plan: Callable[[Site, Args], AnyPlan]
    recorded: bool = False
    agreement: bool = False
    led: bool = False

    def plan(self, site: Site, args: Args) -> AnyPlan:
        """Raises BridgeError when the backend lacks it or the arguments are wrong; then nothing has happened."""
        if self.name in site.backend.lacks:
            raise BridgeError.of(
                ErrorCode.UNSUPPORTED_OPERATION,
                f"backend {site.backend.name!r} has no {self.name}",
                expected="another backend",
            )
        return self.make_plan(site, args)


def operation(
    *, recorded: bool = False, agreement: bool = False, led: bool = False
) -> Callable[[Callable[[Site, Args], AnyPlan]], Operation[Args]]:
    """Declares the operation that a function plans, under the function's name.

    To add one, write its arguments, whose names are those of the fields of its request in `proto/`, and this function
    beside those of its kind. All else is derived from the request.
    """

    def declare(make_plan: Callable[[Site, Args], AnyPlan]) -> Operation[Args]:
        args = get_type_hints(make_plan)["args"]
        return Operation(make_plan.__name__, args, make_plan, recorded, agreement, led)

    return declare


class Site(NamedTuple):
    """Where an operation is planned: one group of one rank, on behalf of one session."""

    generation: Generation
    group: Group
    membership: Membership
    backend: Backend
    refs: RefStore | ProgramCells
    session_id: str
    reserve: Callable[[TensorSpec], Slot | Refill]
    """Where a result goes: room for a new ref, or the ref that it had before. Raises RESOURCE_EXHAUSTED."""
    graphs: GraphStore
    host_id: str
    """Ranks of one host id can share memory."""
    functions: Functions
    inputs: list[Cell] | None = None
    """Where the cells that the operation reads are noted, while there are breakpoints."""

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.group.description.ranks)

    def cell(self, ref_id: str) -> Cell:
        """The cell of an input."""
        if not ref_id:
            raise invalid("ref_id is missing", expected="the id of a ref on this rank", got="''")
        found = self.refs.find(self.session_id, ref_id)
        if self.inputs is not None:
            self.inputs.append(found)
        return found

    def member(self, name: str, rank_in_group: int) -> int:
        """`rank_in_group` if the group has it, else RANK_OUT_OF_RANGE with the argument's name."""
        check_rank(f"{name} is not in the group", rank_in_group, self.size)
        return rank_in_group


class SimplePlan:
    """A plan that has everything beforehand. `payload`: what this rank gives all others with its arrival.

    `slots`: where results go; given back at the end unless they were filled. `run` may add more.
    """

    def __init__(
        self,
        terms: str,
        run: Callable[[Entry], Callable[[], Outcome]],
        payload: bytes = b"",
        slots: Sequence[Slot | Refill] = (),
    ) -> None:
        self.terms = terms
        self.run = run
        self._payload = payload
        self._slots = slots

    def payload(self) -> bytes:
        """Gives the payload."""
        return self._payload

    def abandon(self) -> None:
        """Gives back the room that was not used."""
        for slot in self._slots:
            slot.give_back()


def tensor_plan(
    site: Site,
    terms: str,
    enter: Callable[[Entry], object | None],
    *,
    result: TensorSpec | None = None,
    in_place: Cell | None = None,
    payload: bytes = b"",
) -> Plan:
    """A collective on one tensor of this rank, whose result is one tensor or none.

    `enter` calls the coordinator. The result goes to `in_place`'s cell, or to a new ref of the `result` spec; with
    neither it must be None.
    """
    slot = site.reserve(result) if result else None

    def run(entry: Entry) -> Callable[[], Outcome]:
        tensor = enter(entry)

        def commit() -> Ref | None:
            if in_place is not None:
                in_place.tensor = tensor
                return in_place.ref
            return slot.fill(tensor) if slot is not None else None

        return commit

    return SimplePlan(terms, run, payload, (slot,) if slot is not None else ())
