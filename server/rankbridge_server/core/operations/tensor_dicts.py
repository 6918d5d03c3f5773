"""The collective that moves a map of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import invalid
from ..refs.refs import Cell, Refill, Slot
from .operation import Entry, Plan, SimplePlan, Site, operation
from .outcome import Outcome, TensorDict
from .payloads import Manifest
from .reserving import reserve_on_all


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


@operation()
def broadcast_tensor_dict(site: Site, args: BroadcastTensorDict) -> Plan:
    """Members agree on the source, which sends all what is in the map.

    All learn the manifest with GO, set room aside together, and then broadcast tensor after tensor.
    """
    src = site.member("src_rank_in_group", args.src_rank_in_group)
    is_source = site.membership.rank_in_group == src
    cells: tuple[Cell, ...] = ()
    payload = b""
    if is_source:
        if args.dict is None:
            raise invalid("dict is missing", expected="at the source a map", got="none")
        cells = tuple(site.cell(ref_id) for ref_id in args.dict.ref_ids)
        payload = Manifest(tuple(cell.ref.spec for cell in cells), args.dict.skeleton).pack()
    slots: list[Slot | Refill] = []

    def run(entry: Entry) -> Callable[[], Outcome]:
        tensors = site.backend.tensors
        manifest = Manifest.unpack(entry.payloads[src], tensors.device)
        if manifest.specs:
            slots.extend(reserve_on_all(site, entry, () if is_source else manifest.specs))
        given = [cell.tensor for cell in cells] if is_source else map(tensors.empty, manifest.specs)
        results = [entry.coordinator.broadcast(tensor, src, entry.timeout) for tensor in given]
        return lambda: commit(manifest, results)

    def commit(manifest: Manifest, results: list[object]) -> TensorDict:
        if is_source:
            return TensorDict(manifest.skeleton, tuple(cell.ref for cell in cells))
        refs = tuple(slot.fill(tensor) for slot, tensor in zip(slots, results, strict=True))
        return TensorDict(manifest.skeleton, refs)

    return SimplePlan(f"src_rank_in_group={src}", run, payload, slots)
