"""The tensors of a program while it runs: what its steps have given, and what stands for the refs that it was told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode, invalid
from ..operations.operation import Site
from ..operations.outcome import Outcome
from ..refs.refs import Cell, Ref, Refill, Slot
from ..refs.tensors import TensorSpec
from .program import SIGN


class NotYetKnown(Exception):
    """What a name stands for is known only when all members have told their shapes."""


@dataclass(slots=True, eq=False)
class Held:
    """A tensor of the program. `room` for it among the rank's; None: it stands for a ref, which has room of its own."""

    cell: Cell
    room: Slot | Refill | None
    kept: Ref | None = None

    def keep(self) -> Ref:
        """Its ref, which outlives the program. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        if self.room is None:
            return self.cell.ref
        if self.kept is None:
            self.kept = self.room.fill(self.cell.tensor)
        return self.kept


@dataclass(frozen=True, slots=True)
class Given:
    """What a name stands for. `listed`: a list, also if it is one of one."""

    held: tuple[Held, ...]
    listed: bool


class ProgramCells:
    """Cells of one program on one rank. Implements `Refs`.

    A ref is stood for by a cell of the program's own, so that nobody sees what was changed in place until all is done.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        # None: not yet known.
        self._names: dict[str, Given | None] = {}
        self._standing: dict[str, tuple[Held, Cell]] = {}
        self._changed: set[str] = set()
        self._rooms: list[Slot | Refill] = []
        self._largest = -1
        self._dropping: Slot | Refill | None = None

    def find(self, session_id: str, ref_id: str) -> Cell:
        """The cell of a ref, or of what a step has given. Raises `NotYetKnown`, too."""
        return self.held(session_id, ref_id).cell

    def held(self, session_id: str, ref_id: str) -> Held:
        """The same with its room."""
        if ref_id.startswith(SIGN):
            return self._named(ref_id.removeprefix(SIGN))
        if ref_id not in self._standing:
            real = self._site.refs.find(session_id, ref_id)
            self._standing[ref_id] = (Held(Cell(real.ref, None), None), real)
        return self._standing[ref_id][0]

    def known(self, name: str) -> Given | None:
        """What a name stands for, if that is known."""
        return self._names.get(name)

    def give(self, name: str, given: Given | None) -> None:
        """From now on the name stands for that; None: it is not yet known."""
        if given is not None or name not in self._names:
            self._names[name] = given

    def change(self, ref_id: str) -> None:
        """What stands for a ref is changed in place."""
        if ref_id in self._standing:
            self._changed.add(ref_id)

    def hold(self, name: str, spec: TensorSpec) -> Held:
        """Room for what a step gives. Raises RESOURCE_EXHAUSTED or UNKNOWN_SESSION."""
        room = self._site.reserve(spec)
        self._rooms.append(room)
        ref = Ref(f"{SIGN}{name}", self._site.rank, self._site.session_id, spec)
        return Held(Cell(ref, None), room)

    def hold_dropped(self, spec: TensorSpec) -> None:
        """Room for what is dropped, one at a time: the largest of all. Raises as `hold` does."""
        if spec.nbytes > self._largest:
            if self._dropping is not None:
                self._dropping.give_back()
            self._dropping = self._site.reserve(spec)
            self._largest = spec.nbytes

    def check_results(self, names: Sequence[str]) -> None:
        """Raise INVALID_ARGUMENT if a name was never given."""
        for number, name in enumerate(names):
            if name not in self._names:
                what = f"result {number}: no step gives {name!r}"
                raise invalid(what, expected=self._expected(), got=repr(name))

    def load(self) -> None:
        """Take the refs' tensors as they are now."""
        for held, real in self._standing.values():
            held.cell.tensor = real.tensor

    def commit(self, names: Sequence[str]) -> Outcome:
        """Make refs of the names, and put what was changed in place into its refs.

        Raises UNKNOWN_SESSION, before any ref is changed, if the session was closed meanwhile.
        """
        outcome: Outcome = [self._kept(self._names[name]) for name in names]
        for ref_id in self._changed:
            held, real = self._standing[ref_id]
            real.tensor = held.cell.tensor
        self.give_back()
        return outcome

    def give_back(self) -> None:
        """Free what was not kept; nothing the second time."""
        for room in self._rooms:
            room.give_back()
        if self._dropping is not None:
            self._dropping.give_back()

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

    def _expected(self) -> str:
        return "one of " + ", ".join(map(repr, self._names)) if self._names else "a name that a step gives"

    @staticmethod
    def _kept(given: Given | None) -> Outcome:
        if given is None:
            raise BridgeError.of(ErrorCode.INTERNAL, "a program has ended without what it was to keep")
        if not given.held:
            return None
        refs: list[Outcome] = [held.keep() for held in given.held]
        return refs if given.listed else refs[0]


class Dropped(Refill):
    """Where a result goes that nobody wants."""

    def fill(self, tensor: object) -> Ref:
        """Let go of it."""
        return self._cell.ref


class Output:
    """Where the results of one step go. `listed`: they are a list."""

    def __init__(self, cells: ProgramCells, name: str, *, listed: bool) -> None:
        self._cells = cells
        self._name = name
        self._listed = listed
        self._held: list[Held] = []

    def reserve(self, spec: TensorSpec) -> Refill:
        """Where the step's next result goes. Raises INVALID_ARGUMENT when the name stands for something else."""
        if not self._name:
            self._cells.hold_dropped(spec)
            return Dropped(Cell(Ref(SIGN, 0, "", spec), None))
        known = self._cells.known(self._name)
        held = self._cells.hold(self._name, spec) if known is None else self._same(known, spec)
        self._held.append(held)
        return Refill(held.cell)

    def unknown(self) -> None:
        """What the step gives is not yet known."""
        if self._name:
            self._cells.give(self._name, None)

    def done(self) -> None:
        """The step has asked for all its results. Raises INVALID_ARGUMENT when the name stands for something else."""
        if self._name:
            self._stand(Given(tuple(self._held), self._listed and bool(self._held)))

    def alias(self, held: Held) -> None:
        """What the step gives is the tensor that it has changed in place."""
        if self._name:
            self._stand(Given((held,), False))

    def _stand(self, given: Given) -> None:
        known = self._cells.known(self._name)
        if known is None:
            self._cells.give(self._name, given)
        elif known != given:
            raise self._other(known, _shown(given.held))

    def _same(self, known: Given, spec: TensorSpec) -> Held:
        """What it was given before, which is like this."""
        place = len(self._held)
        held = known.held[place] if place < len(known.held) else None
        # A ref's, or another name's, is changed in place only.
        if held is None or held.cell.ref.id != f"{SIGN}{self._name}" or held.cell.ref.spec != spec:
            raise self._other(known, str(spec))
        return held

    def _other(self, known: Given, got: str) -> BridgeError:
        what = f"{self._name!r} is given again as something else"
        return invalid(what, expected=_shown(known.held), got=got)


def _shown(held: Sequence[Held]) -> str:
    return ", ".join(f"{it.cell.ref.spec} of {it.cell.ref.id}" for it in held) or "nothing"
