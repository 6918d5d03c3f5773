"""What one member of a group sends to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..admission.matching import Post, Side
from ..errors import BridgeError, invalid
from ..refs.refs import Ref, Refill, Slot
from ..refs.tensors import TensorSpec
from .operation import Meeting, Site, Transfer, operation
from .outcome import Outcome, Packed, Received, TensorDict
from .payloads import Manifest, as_bytes, as_tensor, bytes_spec, check_total
from .reserving import give_back, reserve
from .tensor_dicts import GivenDict

TENSOR, OBJECT, TENSOR_DICT = "tensor", "object", "tensor dict"
MAX_TAG = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Send:
    """Send a tensor."""

    ref_id: str
    dst_rank_in_group: int
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Recv:
    """Receive a tensor from one member, or from any.

    `ref_id`: of the ref that takes it; `tensor`: what must come.
    """

    src_rank_in_group: int | None
    tag: int = 0
    ref_id: str | None = None
    tensor: TensorSpec | None = None


@dataclass(frozen=True, slots=True)
class SendObject:
    """Send a value."""

    value: Packed
    dst_rank_in_group: int
    tag: int = 0


@dataclass(frozen=True, slots=True)
class RecvObject:
    """Receive a value from one member, or from any."""

    src_rank_in_group: int | None
    tag: int = 0


@dataclass(frozen=True, slots=True)
class SendTensorDict:
    """Send a map of tensors."""

    dict: GivenDict
    dst_rank_in_group: int
    tag: int = 0


@dataclass(frozen=True, slots=True)
class RecvTensorDict:
    """Receive a map of tensors from one member, or from any."""

    src_rank_in_group: int | None
    tag: int = 0


@operation()
def send(site: Site, args: Send) -> Transfer:
    """The receiver must be another member; what it expects must be this tensor's dtype and shape."""
    cell = site.cell(args.ref_id)
    spec = cell.ref.spec
    manifest = Manifest((spec,))
    return _send(
        _sending(site, args.dst_rank_in_group, args.tag, TENSOR, manifest, str(spec)), lambda: [cell.tensor]
    )


@operation()
def send_object(site: Site, args: SendObject) -> Transfer:
    """The receiver must be another member."""
    data = args.value.data
    check_total([len(data)])
    tensors = site.backend.tensors
    manifest = Manifest((bytes_spec(len(data), tensors.device),))
    post = _sending(site, args.dst_rank_in_group, args.tag, OBJECT, manifest)
    return _send(post, lambda: [as_tensor(tensors, data)])


@operation()
def send_tensor_dict(site: Site, args: SendTensorDict) -> Transfer:
    """The receiver must be another member."""
    cells = [site.cell(ref_id) for ref_id in args.dict.ref_ids]
    manifest = Manifest(tuple(cell.ref.spec for cell in cells), args.dict.skeleton)
    post = _sending(site, args.dst_rank_in_group, args.tag, TENSOR_DICT, manifest)
    return _send(post, lambda: [cell.tensor for cell in cells])


@operation()
def recv(site: Site, args: Recv) -> Transfer:
    """The sender must be another member. Room is set aside at once where it is known for how much."""
    expected = site.cell(args.ref_id).ref.spec if args.ref_id else args.tensor
    post = _receiving(site, args.src_rank_in_group, args.tag, TENSOR, str(expected or ""))
    if args.ref_id:
        cell = site.cell(args.ref_id)

        def take(manifest: Manifest, tensors: Sequence[object], refs: Sequence[Ref]) -> Outcome:
            cell.tensor = tensors[0]
            return cell.ref

        return _receive(site, post, take, keeps=False)
    slots = reserve(site, [expected]) if expected else []
    return _receive(site, post, lambda manifest, tensors, refs: refs[0], slots)


@operation()
def recv_object(site: Site, args: RecvObject) -> Transfer:
    """The sender must be another member."""

    def read(manifest: Manifest, tensors: Sequence[object], refs: Sequence[Ref]) -> Outcome:
        return Packed(as_bytes(site.backend.tensors, tensors[0]))

    return _receive(site, _receiving(site, args.src_rank_in_group, args.tag, OBJECT), read, keeps=False)


@operation()
def recv_tensor_dict(site: Site, args: RecvTensorDict) -> Transfer:
    """The sender must be another member."""
    return _receive(
        site,
        _receiving(site, args.src_rank_in_group, args.tag, TENSOR_DICT),
        lambda manifest, tensors, refs: TensorDict(manifest.skeleton, tuple(refs)),
    )


Take = Callable[[Manifest, Sequence[object], Sequence[Ref]], Outcome]
"""What a receive gives, of what came, and of the refs that were made of it."""


def _send(post: Post, give: Callable[[], Sequence[object]]) -> Transfer:
    """Sends tensor after tensor. `give`: the tensors, as they are when the receiver has been found."""

    def run(meeting: Meeting) -> Callable[[], Outcome]:
        for tensor in give():
            meeting.coordinator.send(tensor, meeting.peer, meeting.number, meeting.timeout)
        return lambda: None

    return Transfer(post, run)


def _receive(
    site: Site, post: Post, take: Take, reserved: Sequence[Slot | Refill] = (), *, keeps: bool = True
) -> Transfer:
    """Receives tensor after tensor. `keeps`: makes refs of them; `reserved` for those that were known before."""
    slots = list(reserved)

    def run(meeting: Meeting) -> Callable[[], Outcome]:
        manifest = Manifest.unpack(meeting.payload, site.backend.tensors.device)
        no_room: BridgeError | None = None
        if keeps and not slots:
            try:
                slots.extend(reserve(site, manifest.specs))
            except BridgeError as error:
                no_room = error
        # Received even if there is no room: the sender is sending.
        tensors = [received(spec, meeting) for spec in manifest.specs]
        if no_room is not None:
            message = f"it came from rank_in_group {meeting.peer} and was dropped: {no_room.failure.message}"
            raise BridgeError(replace(no_room.failure, message=message, indefinite=True))
        return lambda: commit(manifest, tensors, meeting.peer)

    def received(spec: TensorSpec, meeting: Meeting) -> object:
        tensor = site.backend.tensors.empty(spec)
        meeting.coordinator.recv(tensor, meeting.peer, meeting.number, meeting.timeout)
        return tensor

    def commit(manifest: Manifest, tensors: Sequence[object], peer: int) -> Outcome:
        refs = [slot.fill(tensor) for slot, tensor in zip(slots, tensors, strict=False)]
        return Received(take(manifest, tensors, refs), peer)

    return Transfer(post, run, lambda: give_back(slots))


def _sending(site: Site, dst: int, tag: int, kind: str, manifest: Manifest, spec: str = "") -> Post:
    peer = _other(site, "dst_rank_in_group", dst)
    return Post(0, Side.SEND, peer, _tag(tag), kind, spec, 0.0, manifest.pack())


def _receiving(site: Site, src: int | None, tag: int, kind: str, spec: str = "") -> Post:
    peer = None if src is None else _other(site, "src_rank_in_group", src)
    return Post(0, Side.RECV, peer, _tag(tag), kind, spec, 0.0)


def _tag(tag: int) -> int:
    if not 0 <= tag <= MAX_TAG:
        raise invalid("tag is out of range", expected=f"0 to {MAX_TAG}", got=str(tag))
    return tag


def _other(site: Site, name: str, rank_in_group: int) -> int:
    if site.member(name, rank_in_group) == site.membership.rank_in_group:
        raise invalid(f"{name} is this rank itself", expected="another member", got=str(rank_in_group))
    return rank_in_group
