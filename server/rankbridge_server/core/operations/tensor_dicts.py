"""The collective that moves a map of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import invalid
from ..refs.refs import Cell, Refill, Slot
from .operation import Entry, Plan, Site
from .outcome import Outcome, TensorDict
from .payloads import Manifest
from .reserving import give_back, reserve_on_all


@dataclass(frozen=True, slots=True)
class GivenDict:
    """A tensor dict as a caller gives it: the ids of its refs, in the order of their places in the skeleton."""

    skeleton: bytes
    ref_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BroadcastTensorDict:
    """Give every member the source's map, with tensors of its own. `dict`: at the source; None elsewhere."""

    dict: GivenDict | None
    src_rank_in_group: int


def plan_broadcast_tensor_dict(site: Site, args: BroadcastTensorDict) -> Plan:
    """Members agree on the source, which sends all what is in the map."""
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    if site.membership.rank_in_group != src:
        return _BroadcastDictPlan(site, src, (), b"")
    if args.dict is None:
        raise invalid("dict is missing", expected="at the source a map", got="none")
    cells = tuple(site.cell(ref_id) for ref_id in args.dict.ref_ids)
    manifest = Manifest(tuple(cell.ref.spec for cell in cells), args.dict.skeleton)
    return _BroadcastDictPlan(site, src, cells, manifest.pack())


class _BroadcastDictPlan:
    """All learn the manifest with GO, set room aside together, and then broadcast tensor after tensor."""

    def __init__(self, site: Site, src: int, cells: tuple[Cell, ...], payload: bytes) -> None:
        self.terms = f"src_rank_in_group={src}"
        self._site = site
        self._src = src
        self._is_source = site.membership.rank_in_group == src
        self._cells = cells
        self._payload = payload
        self._slots: list[Slot | Refill] = []

    def payload(self) -> bytes:
        """At the source the manifest."""
        return self._payload

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Broadcast each tensor."""
        tensors, coordinator = self._site.backend.tensors, entry.coordinator
        manifest = Manifest.unpack(entry.payloads[self._src], tensors.device)
        if manifest.specs:
            self._slots = reserve_on_all(self._site, entry, () if self._is_source else manifest.specs)
        given = (
            [cell.tensor for cell in self._cells] if self._is_source else map(tensors.empty, manifest.specs)
        )
        results = [coordinator.broadcast(tensor, self._src, entry.timeout) for tensor in given]
        return lambda: self._commit(manifest, results)

    def abandon(self) -> None:
        """Give the room back that was not used."""
        give_back(self._slots)

    def _commit(self, manifest: Manifest, results: list[object]) -> TensorDict:
        if self._is_source:
            return TensorDict(manifest.skeleton, tuple(cell.ref for cell in self._cells))
        refs = tuple(slot.fill(tensor) for slot, tensor in zip(self._slots, results, strict=True))
        return TensorDict(manifest.skeleton, refs)
