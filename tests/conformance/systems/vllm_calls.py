"""The methods of vLLM's `GroupCoordinator`: their parameters, and which call of the bridge each of them is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.conformance.clients.client import CallArguments
from tests.conformance.values import Tensor
from tests.conformance.vllm_grammar import Unserialisable

from rankbridge import Group, Ref

Arguments: TypeAlias = dict[str, Any]

REQUIRED = object()
"""Stands for a parameter without a default."""

PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "all_reduce": {"input_": REQUIRED},
    "all_gather": {"input_": REQUIRED, "dim": -1},
    "all_gatherv": {"input_": REQUIRED, "dim": 0, "sizes": None},
    "reduce_scatter": {"input_": REQUIRED, "dim": -1},
    "reduce_scatterv": {"input_": REQUIRED, "dim": -1, "sizes": None},
    "gather": {"input_": REQUIRED, "dst": 0, "dim": -1},
    "broadcast": {"input_": REQUIRED, "src": 0},
    "broadcast_object": {"obj": None, "src": 0},
    "broadcast_object_list": {"obj_list": REQUIRED, "src": 0, "group": None},
    "broadcast_tensor_dict": {"tensor_dict": None, "src": 0, "group": None, "metadata_group": None},
    "send_object": {"obj": REQUIRED, "dst": REQUIRED},
    "recv_object": {"src": REQUIRED},
    "send_tensor_dict": {"tensor_dict": REQUIRED, "dst": None},
    "recv_tensor_dict": {"src": None},
    "isend_tensor_dict": {"tensor_dict": REQUIRED, "dst": None},
    "irecv_tensor_dict": {"src": None},
    "send": {"tensor": REQUIRED, "dst": None},
    "recv": {"size": REQUIRED, "dtype": REQUIRED, "src": None},
    "barrier": {},
    "destroy": {},
    "first_rank": {},
    "next_rank": {},
    "prepare_communication_buffer_for_model": {"model": REQUIRED},
    "graph_capture": {"graph_capture_context": None},
    "combine": {"hidden_states": REQUIRED, "is_sequence_parallel": False},
    "_all_reduce_out_place": {"input_": REQUIRED},
    "_all_gather_out_place": {"input_": REQUIRED, "dim": REQUIRED},
    "_reduce_scatter_out_place": {"input_": REQUIRED, "dim": REQUIRED},
    "create_mq_broadcaster": {"writer_rank": 0, "external_writer_handle": None, "blocking": True},
    "create_single_reader_mq_broadcasters": {"reader_rank_in_group": 0, "blocking": False},
}


def bound(method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    """Gives arguments by name, defaults included; what is required and missing is not there."""
    if method.startswith("dispatch"):
        return _dispatched(args)
    parameters = PARAMETERS[method]
    given = {**dict(zip(parameters, args, strict=False)), **kwargs}
    by_name = {name: given.get(name, default) for name, default in parameters.items()}
    return {name: value for name, value in by_name.items() if value is not REQUIRED}


def lacks(method: str, given: Arguments) -> bool:
    """Whether a required argument of a method is not there."""
    parameters = PARAMETERS.get(method, {})
    return any(name not in given for name, default in parameters.items() if default is REQUIRED)


def _dispatched(args: Sequence[Any]) -> Arguments:
    # The two versions differ in what comes after the first two tensors: another tensor, a flag, a list of tensors.
    tensors = [it for it in args if isinstance(it, Tensor)]
    lists = [it for it in args if isinstance(it, list)]
    return {"tensors": tensors, "extra_tensors": lists[0] if lists else []}


def by_value(value: Any) -> Any:
    """A value that travels, tensors in it by value."""
    if isinstance(value, Tensor):
        return value.for_bridge()
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, Unserialisable):
        return object()
    if isinstance(value, list | tuple):
        return type(value)(by_value(item) for item in value)
    if isinstance(value, dict):
        return {by_value(key): by_value(item) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class Context:
    """Where one rank makes a call.

    Attributes:
        group: The group.
        rank: Rank in the gang.
        put: Brings a tensor to it.
    """

    group: Group
    rank: int
    put: Callable[[Tensor], Ref]

    @property
    def place(self) -> int:
        """Its place in the group."""
        return self.group.member(self.rank).rank_in_group

    def with_refs(self, value: Any) -> Any:
        """A map of tensors, with refs on this rank in their places."""
        if isinstance(value, Tensor):
            return self.put(value)
        if isinstance(value, dict):
            return {key: self.with_refs(item) for key, item in value.items()}
        return [self.with_refs(item) for item in value] if isinstance(value, list) else value


Make: TypeAlias = Callable[[Context, Arguments], CallArguments]


def _tensor(**names: str) -> Make:
    """A call of one tensor; `names` of options, and which argument each is."""

    def make(context: Context, given: Arguments) -> CallArguments:
        tensor = context.put(given["input_"])
        return (tensor,), {option: given[name] for option, name in names.items()}

    return make


def _in_place(**names: str) -> Make:
    def make(context: Context, given: Arguments) -> CallArguments:
        args, options = _tensor(**names)(context, given)
        return args, {**options, "in_place": True}

    return make


def _neighbour(context: Context, given: Arguments, name: str, step: int) -> dict[str, Any]:
    """Who is sent to or received from: vLLM's next member, or the one before, if it is not said."""
    if name not in given:
        return {}
    place = given[name]
    if place is None:
        place = (context.place + step) % len(context.group)
    return {f"{name}_rank_in_group": place}


def _send(context: Context, given: Arguments) -> CallArguments:
    return (context.put(given["tensor"]),), _neighbour(context, given, "dst", 1)


def _recv(context: Context, given: Arguments) -> CallArguments:
    return (), {"expected": (given["dtype"], given["size"]), **_neighbour(context, given, "src", -1)}


def _object(context: Context, given: Arguments) -> CallArguments:
    return (by_value(given["obj"]),), {"src_rank_in_group": given["src"]}


def _object_list(context: Context, given: Arguments) -> CallArguments:
    return (by_value(given["obj_list"]),), {"src_rank_in_group": given["src"]}


def _tensor_dict(context: Context, given: Arguments) -> CallArguments:
    tensors = given["tensor_dict"]
    # Of members that are not the source nothing is sent: theirs need not be on the rank.
    is_source = given["src"] == context.place or given["src"] not in range(len(context.group))
    return (context.with_refs(tensors) if is_source else None,), {"src_rank_in_group": given["src"]}


def _send_object(context: Context, given: Arguments) -> CallArguments:
    return (by_value(given["obj"]),), _neighbour(context, given, "dst", 1)


def _send_tensor_dict(context: Context, given: Arguments) -> CallArguments:
    return (context.with_refs(given["tensor_dict"]),), _neighbour(context, given, "dst", 1)


def _from(context: Context, given: Arguments) -> CallArguments:
    return (), _neighbour(context, given, "src", -1)


def _gatherv(context: Context, given: Arguments) -> CallArguments:
    tensors = given["input_"]
    refs = [context.put(it) for it in tensors] if isinstance(tensors, list) else context.put(tensors)
    return (refs,), {"dim": given["dim"], "sizes": given["sizes"]}


def _dispatch(context: Context, given: Arguments) -> CallArguments:
    first, second, *more = [context.put(it) for it in given["tensors"]]
    extra = [*more, *(context.put(it) for it in given["extra_tensors"])]
    return (first, second, extra), {"sizes": given["sizes"]}


def _combine(context: Context, given: Arguments) -> CallArguments:
    return (context.put(given["hidden_states"]),), {"sizes": given["sizes"]}


def _no_arguments(_: Context, __: Arguments) -> CallArguments:
    return (), {}


CALLS: Mapping[str, tuple[str, Make]] = {
    "all_reduce": ("all_reduce", _in_place()),
    "all_gather": ("all_gather", _tensor(dim="dim")),
    "all_gatherv": ("all_gatherv", _gatherv),
    "reduce_scatter": ("reduce_scatter", _tensor(dim="dim")),
    "reduce_scatterv": ("reduce_scatterv", _tensor(dim="dim", sizes="sizes")),
    "gather": ("gather", _tensor(dst_rank_in_group="dst", dim="dim")),
    "broadcast": ("broadcast", _in_place(src_rank_in_group="src")),
    "broadcast_object": ("broadcast_object", _object),
    "broadcast_object_list": ("broadcast_object_list", _object_list),
    "broadcast_tensor_dict": ("broadcast_tensor_dict", _tensor_dict),
    "send_object": ("send_object", _send_object),
    "recv_object": ("recv_object", _from),
    "send_tensor_dict": ("send_tensor_dict", _send_tensor_dict),
    "recv_tensor_dict": ("recv_tensor_dict", _from),
    "isend_tensor_dict": ("send_tensor_dict", _send_tensor_dict),
    "irecv_tensor_dict": ("recv_tensor_dict", _from),
    "send": ("send", _send),
    "recv": ("recv", _recv),
    "barrier": ("barrier", _no_arguments),
    "dispatch": ("dispatch", _dispatch),
    "dispatch_router_logits": ("dispatch", _dispatch),
    "combine": ("combine", _combine),
    "_all_reduce_out_place": ("all_reduce", _in_place()),
    "_all_gather_out_place": ("_all_gather_out_place", _tensor(dim="dim")),
    "_reduce_scatter_out_place": ("_reduce_scatter_out_place", _tensor(dim="dim")),
}
"""For each method the bridge's, and how its arguments are made."""

ON_CUDA: Mapping[str, tuple[str, Make]] = {"all_reduce": ("all_reduce", _tensor())}
"""Those that do another thing in vLLM's CUDA code, which leaves their argument as it is."""

OF_COORDINATORS = ("all_gatherv", "dispatch", "dispatch_router_logits")
"""Methods that take or give lists of each member, which a group coordinator has."""

MEETINGS = frozenset(CALLS) - {
    "send",
    "recv",
    "send_object",
    "recv_object",
    "send_tensor_dict",
    "recv_tensor_dict",
    "isend_tensor_dict",
    "irecv_tensor_dict",
}
"""Methods that wait for all members of the group."""
