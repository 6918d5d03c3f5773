"""The tensors of a program while it runs: stand-ins for the refs that it reads and changes, and what its steps give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, invalid
from ..operations.gathers import GatherLayout
from ..operations.operation import Site
from ..operations.outcome import Outcome
from ..refs.refs import Cell, Ref, Refill, Slot
from ..refs.tensors import TensorSpec
from .program import SIGN, ProgramOperation


class NotYetKnown(Exception):
    """What a name stands for is known only when all members have sent their shapes."""


@dataclass(slots=True, eq=False)
class Held(Refill):
    """A tensor of the program. `room` for it among the rank's; None: it stands for a ref, which has room of its own."""

    room: Slot | Refill | None = None
    kept: Ref | None = None

    def keep(self) -> Ref:
        """Its ref, which outlives the program. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        if self.room is None:
            return self.ref
        if self.kept is None:
            self.kept = self.room.fill(self.tensor)
        return self.kept


@dataclass(slots=True)
class Given:
    """What a name stands for. `listed`: a list, also if it is one of one."""

    held: list[Held]
    listed: bool


class ProgramCells:
    """Cells of one program on one rank. Implements `Refs` for the step that was begun last.

    A ref has a stand-in, so that nobody outside sees a change before the whole program is done. With `snapshots` a step
    in place has a stand-in of its own, so that no other step sees the change either.
    """

    def __init__(self, site: Site, *, snapshots: bool) -> None:
        self._site = site
        self.snapshots = snapshots
        # By id: a ref's cell, and its stand-ins. The first is the one that is read.
        self._refs: dict[str, tuple[Cell, list[Held]]] = {}
        self._bound: dict[str, Held] = {}
        # The cells that get tensors when the program is done, in the order of the steps.
        self._changed: dict[Held, Cell] = {}
        # None: not yet known.
        self._names: dict[str, Given | None] = {}
        self._rooms: list[Slot | Refill] = []
        self._dropped: tuple[int, Slot | Refill] | None = None
        self._step: ProgramOperation
        self._given: list[Held] = []

    # --- while a step is planned

    def begin(self, step: ProgramOperation) -> None:
        """What is found and reserved from now on is the step's. Raises what finding a ref raises."""
        self._step, self._given = step, []
        for ref_id in step.bound or ():
            if ref_id not in self._bound:
                real = self._site.refs.find(self._site.session_id, ref_id)
                held = self._bound[ref_id] = Held(real.ref, None)
                self._changed[held] = real

    def find(self, session_id: str, ref_id: str) -> Cell:
        """The cell of a ref, or of what a step has given. Raises `NotYetKnown`, too."""
        changes = getattr(self._step.args, "in_place", False)
        if ref_id.startswith(SIGN) and not self.snapshots:
            held = self._named(ref_id.removeprefix(SIGN))
        else:
            held = self._standing(session_id, ref_id, changes)
        if changes:
            self._given.append(held)
        return held

    def reserve(self, spec: TensorSpec) -> Refill:
        """Where the step's next result goes. Raises INVALID_ARGUMENT when it is not like what is there."""
        name = self._step.name
        if self._step.bound is not None:
            held = self._next_bound(self._step.bound, spec)
        elif not name:
            self._reserve_dropped(spec)
            return _Dropped(Ref(SIGN, 0, "", spec), None)
        elif known := self._names.get(name):
            held = self._same(known, spec)
        else:
            room = self._site.reserve(spec)
            self._rooms.append(room)
            held = Held(Ref(SIGN + name, self._site.rank, self._site.session_id, spec), None, room)
        self._given.append(held)
        return held

    def end(self) -> None:
        """The step has asked for all its results. Raises INVALID_ARGUMENT when its name stands for something else."""
        name = self._step.name
        if not name:
            return
        listed = bool(self._given) and getattr(self._step.args, "layout", None) is GatherLayout.LIST
        given = Given(self._given, listed)
        known = self._names.get(name)
        if known is None:
            self._names[name] = given
        elif known != given:
            raise self._other(known, _shown(given.held))

    def unknown(self) -> None:
        """What the step gives is not yet known."""
        if self._step.name:
            self._names.setdefault(self._step.name, None)

    def check_results(self, names: Sequence[str]) -> None:
        """Raise INVALID_ARGUMENT if a name was never given."""
        for number, name in enumerate(names):
            if name not in self._names:
                what = f"result {number}: no step gives {name!r}"
                raise invalid(what, expected=self._expected(), got=repr(name))

    # --- while the program runs

    def inputs(self) -> list[object]:
        """The tensors of the refs that are read or changed, as they are now."""
        return [real.tensor for real, _ in self._refs.values()]

    def load(self, inputs: Sequence[object]) -> None:
        """Let every stand-in have its ref's tensor of `inputs`."""
        for (_, standing), tensor in zip(self._refs.values(), inputs, strict=True):
            for held in standing:
                held.tensor = tensor

    def changes(self) -> list[object]:
        """The tensors that refs are to get when the program is done."""
        return [held.tensor for held in self._changed]

    def set_changes(self, tensors: Sequence[object]) -> None:
        """Replace them."""
        for held, tensor in zip(self._changed, tensors, strict=True):
            held.tensor = tensor

    def commit(self, names: Sequence[str]) -> Outcome:
        """Make refs of the names, and put what has changed into its refs.

        Raises UNKNOWN_SESSION, before any ref is changed, if the session was closed meanwhile.
        """
        outcome: Outcome = [_kept(self._names[name]) for name in names]
        for held, real in self._changed.items():
            real.tensor = held.tensor
        self.give_back()
        return outcome

    def give_back(self) -> None:
        """Free what was not kept; nothing the second time."""
        for room in self._rooms:
            room.give_back()
        if self._dropped is not None:
            self._dropped[1].give_back()

    def _standing(self, session_id: str, ref_id: str, changes: bool) -> Held:
        if ref_id not in self._refs:
            real = self._site.refs.find(session_id, ref_id)
            self._refs[ref_id] = (real, [Held(real.ref, None)])
        real, standing = self._refs[ref_id]
        held = standing[0]
        if changes:
            if self.snapshots:
                held = Held(real.ref, None)
                standing.append(held)
            self._changed[held] = real
        return held

    def _named(self, name: str) -> Held:
        if name not in self._names:
            what = f"no earlier step gives {name!r}"
            raise invalid(what, expected=self._expected(), got=f"{SIGN}{name}")
        given = self._names[name]
        if given is None:
            raise NotYetKnown(name)
        if given.listed or not given.held:
            got = f"a list of {len(given.held)}" if given.held else "nothing, on this rank"
            raise invalid(f"{SIGN}{name} is not one tensor", expected="one tensor", got=got)
        return given.held[0]

    def _next_bound(self, bound: Sequence[str], spec: TensorSpec) -> Held:
        place = len(self._given)
        if place == len(bound):
            raise invalid("the graph has fewer results than the collective gives now")
        held = self._bound[bound[place]]
        if held.ref.spec != spec:
            what = "the collective gives another tensor than when it was recorded"
            raise invalid(what, expected=str(held.ref.spec), got=str(spec))
        return held

    def _reserve_dropped(self, spec: TensorSpec) -> None:
        """Room for what is dropped, one at a time: the largest of all. Raises RESOURCE_EXHAUSTED or UNKNOWN_SESSION."""
        if self._dropped is not None:
            if spec.nbytes <= self._dropped[0]:
                return
            self._dropped[1].give_back()
        self._dropped = None
        self._dropped = (spec.nbytes, self._site.reserve(spec))

    def _same(self, known: Given, spec: TensorSpec) -> Held:
        """What the name was given before, which is like this."""
        place = len(self._given)
        held = known.held[place] if place < len(known.held) else None
        # A ref's, or another name's, is changed in place only.
        if held is None or held.ref.id != SIGN + self._step.name or held.ref.spec != spec:
            raise self._other(known, str(spec))
        return held

    def _other(self, known: Given, got: str) -> BridgeError:
        what = f"{self._step.name!r} is given again as something else"
        return invalid(what, expected=_shown(known.held), got=got)

    def _expected(self) -> str:
        return "one of " + ", ".join(map(repr, self._names)) if self._names else "a name that a step gives"


class _Dropped(Refill):
    """Where a result goes that nobody wants."""

    __slots__ = ()

    def fill(self, tensor: object) -> Ref:
        """Forget it."""
        return self.ref


def _kept(given: Given | None) -> Outcome:
    if given is None:
        raise BridgeError.of(ErrorCode.INTERNAL, "a program has ended without what it was to keep")
    if not given.held:
        return None
    refs: list[Outcome] = [held.keep() for held in given.held]
    return refs if given.listed else refs[0]


def _shown(held: Sequence[Held]) -> str:
    return ", ".join(f"{it.ref.spec} of {it.ref.id}" for it in held) or "nothing"
