"""The tensors of a running program: stand-ins for the refs that it reads and changes, and the results of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ..errors import BridgeError, invalid
from ..operations.gathers import GatherLayout
from ..operations.operation import Site
from ..operations.outcome import Outcome
from ..refs.refs import Cell, Ref, Refill, Slot
from ..refs.tensors import TensorSpec
from .program import SIGN, ProgramOperation


class NotYetKnown(Exception):
    """The shape of a named result is unknown until all members have sent theirs."""


@dataclass(slots=True, eq=False)
class ProgramTensor(Refill):
    """A tensor of the program. `slot`: its reserved memory; None: it stands for a ref, which has its own."""

    slot: Slot | Refill | None = None

    def keep(self) -> Ref:
        """Makes a ref, which outlives the program. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        if self.slot is not None:
            self.ref, self.slot = self.slot.fill(self.tensor), None
        return self.ref


class Dropped(Refill):
    """The cell of a result without a name."""

    __slots__ = ()

    def fill(self, tensor: object) -> Ref:
        """Drops the result."""
        return self.ref


@dataclass(slots=True)
class NamedResult:
    """The result behind a name. `listed`: it is a list, even of one tensor."""

    held: list[ProgramTensor]
    listed: bool

    def keep(self) -> Outcome:
        """Makes refs, as a collective returns them. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        refs: list[Outcome] = [held.keep() for held in self.held]
        return refs if self.listed else refs[0] if refs else None

    def __str__(self) -> str:
        return ", ".join(f"{it.ref.spec} of {it.ref.id}" for it in self.held) or "nothing"


class ProgramCells:
    """The cells of one program on one rank. Stands for the rank's refs in the step that was begun last.

    Each ref has a stand-in, so that changes become visible outside only when the whole program is done. With
    `snapshots` each step in place has a stand-in of its own, so that no other step sees its change either.
    """

    def __init__(self, site: Site, *, snapshots: bool) -> None:
        self.snapshots = snapshots
        self._site = site
        self._step: ProgramOperation
        self._results: list[ProgramTensor] = []
        # None: unknown until members have sent their shapes.
        self._names: dict[str, NamedResult | None] = {}
        # By ref id: the ref's cell and its stand-ins, of which steps read the first.
        self._refs: dict[str, tuple[Cell, list[ProgramTensor]]] = {}
        # The cells that get tensors when the program is done, in the order of the steps.
        self._changed: dict[ProgramTensor, Cell] = {}
        self._slots: list[Slot | Refill] = []
        self._dropped: tuple[int, Slot | Refill] | None = None

    def begin(self, step: ProgramOperation) -> None:
        """Makes a step the current one, for `find` and `reserve`. Raises what finding a ref raises."""
        self._step, self._results = step, []
        if step.bound is not None and step.name not in self._names:
            self._names[step.name] = self._named_result([self._binding(ref_id) for ref_id in step.bound])

    def find(self, session_id: str, ref_id: str) -> Cell:
        """The cell of a ref, or of a named result. Raises `NotYetKnown`, too."""
        changes = getattr(self._step.args, "in_place", False)
        if ref_id.startswith(SIGN) and not self.snapshots:
            held = self._named(ref_id.removeprefix(SIGN))
        else:
            held = self._standing(ref_id, changes)
        if changes:
            self._results.append(held)
        return held

    def reserve(self, spec: TensorSpec) -> Refill:
        """A cell for the step's next result. Raises INVALID_ARGUMENT if its name has a result of another spec."""
        name = self._step.name
        if not name:
            self._reserve_dropped(spec)
            return Dropped(Ref(SIGN, 0, "", spec), None)
        known = self._names.get(name)
        if known is not None:
            held = self._same(known, spec)
        else:
            slot = self._site.reserve(spec)
            self._slots.append(slot)
            held = ProgramTensor(
                Ref(SIGN + name, self._site.generation.rank, self._site.session_id, spec), None, slot
            )
        self._results.append(held)
        return held

    def end(self, known: bool) -> None:
        """Ends the step. `known`: its results are reserved. Raises INVALID_ARGUMENT as `reserve` does."""
        if not self._step.name:
            return
        before = self._names.setdefault(self._step.name, None)
        if known:
            given = self._named_result(self._results)
            if before is not None and before != given:
                raise self._other(before, str(given))
            self._names[self._step.name] = given

    def check_results(self, names: Sequence[str]) -> None:
        """Raises INVALID_ARGUMENT for a name without a step."""
        for number, name in enumerate(names):
            self._find(name, f"result {number}: no step gives {name!r}", repr(name))

    def inputs(self) -> list[object]:
        """The current tensors of the refs that the program reads or changes."""
        return [real.tensor for real, _ in self._refs.values()]

    def load(self, inputs: Sequence[object]) -> None:
        """Gives every stand-in its ref's tensor from `inputs`."""
        for (_, standing), tensor in zip(self._refs.values(), inputs, strict=True):
            for held in standing:
                held.tensor = tensor

    def changes(self) -> list[object]:
        """The tensors that refs get when the program is done."""
        return [held.tensor for held in self._changed]

    def commit(self, names: Sequence[str], changes: Sequence[object]) -> Outcome:
        """Makes refs of the named results, and puts `changes` into the changed refs.

        Raises UNKNOWN_SESSION, before any ref is changed, if the session was closed meanwhile.
        """
        outcome: Outcome = [cast(NamedResult, self._names[name]).keep() for name in names]
        for real, tensor in zip(self._changed.values(), changes, strict=True):
            real.tensor = tensor
        self.give_back()
        return outcome

    def give_back(self) -> None:
        """Frees the slots that were not filled. Does nothing the second time."""
        for slot in self._slots:
            slot.give_back()
        if self._dropped is not None:
            self._dropped[1].give_back()

    def _standing(self, ref_id: str, changes: bool) -> ProgramTensor:
        if ref_id not in self._refs:
            real = self._site.refs.find(self._site.session_id, ref_id)
            self._refs[ref_id] = (real, [ProgramTensor(real.ref, None)])
        real, standing = self._refs[ref_id]
        held = standing[0]
        if changes and self.snapshots:
            held = ProgramTensor(real.ref, None)
            standing.append(held)
        if changes:
            self._changed[held] = real
        return held

    def _binding(self, ref_id: str) -> ProgramTensor:
        real = self._site.refs.find(self._site.session_id, ref_id)
        held = ProgramTensor(real.ref, None)
        self._changed[held] = real
        return held

    def _named(self, name: str) -> ProgramTensor:
        given = self._find(name, f"no earlier step gives {name!r}", SIGN + name)
        if given is None:
            raise NotYetKnown(name)
        if given.listed or not given.held:
            got = f"a list of {len(given.held)}" if given.held else "nothing, on this rank"
            raise invalid(f"{SIGN}{name} is not one tensor", expected="one tensor", got=got)
        return given.held[0]

    def _named_result(self, held: list[ProgramTensor]) -> NamedResult:
        return NamedResult(held, bool(held) and getattr(self._step.args, "layout", None) is GatherLayout.LIST)

    def _reserve_dropped(self, spec: TensorSpec) -> None:
        """Reserves one slot for all dropped results, as large as the largest."""
        if self._dropped is not None:
            if spec.nbytes <= self._dropped[0]:
                return
            self._dropped[1].give_back()
        self._dropped = None
        self._dropped = (spec.nbytes, self._site.reserve(spec))

    def _same(self, known: NamedResult, spec: TensorSpec) -> ProgramTensor:
        """The tensor that an earlier run of the step has put under the name, of the same spec."""
        step, place = self._step, len(self._results)
        held = known.held[place] if place < len(known.held) else None
        # The tensor of another ref or name only changes in place.
        if (
            held is None
            or held.ref.spec != spec
            or held.ref.id not in (SIGN + step.name, *(step.bound or ()))
        ):
            raise self._other(known, str(spec))
        return held

    def _other(self, known: NamedResult, got: str) -> BridgeError:
        what = f"{self._step.name!r} is given again as something else"
        if self._step.bound is not None:
            what = "the collective gives another tensor than when it was recorded"
        return invalid(what, expected=str(known), got=got)

    def _find(self, name: str, what: str, got: str) -> NamedResult | None:
        if name not in self._names:
            names = ", ".join(map(repr, self._names))
            raise invalid(what, expected=f"one of {names}" if names else "a name that a step gives", got=got)
        return self._names[name]
