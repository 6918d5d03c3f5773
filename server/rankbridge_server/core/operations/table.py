"""Every operation, declared once: its name, and what is checked, agreed on, and run.

To add one: write its arguments and a function from site and arguments to a plan beside those of its kind, and declare
it below. All else is derived from its request in `proto/`, whose fields the arguments have under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..groups.operations import DestroyGroup, NewGroup, plan_destroy_group, plan_new_group
from ..programs.plan import plan_coalesce, plan_run_program
from ..programs.program import Coalesce, Replay, RunProgram
from ..programs.replays import plan_replay
from ..queues.operations import Dequeue, Enqueue, NewQueue, plan_dequeue, plan_enqueue, plan_new_queue
from .all_to_all import AllToAll, plan_all_to_all
from .gathers import AllGather, Gather, plan_all_gather, plan_gather
from .moves import Broadcast, Scatter, plan_broadcast, plan_scatter
from .objects import (
    AllGatherObject,
    BroadcastObject,
    GatherObject,
    ScatterObject,
    plan_all_gather_object,
    plan_broadcast_object,
    plan_gather_object,
    plan_scatter_object,
)
from .operation import Operation, Plan, Site, tensor_plan
from .point_to_point import (
    Recv,
    RecvObject,
    RecvTensorDict,
    Send,
    SendObject,
    SendTensorDict,
    plan_recv,
    plan_recv_object,
    plan_recv_tensor_dict,
    plan_send,
    plan_send_object,
    plan_send_tensor_dict,
)
from .reductions import (
    AllReduce,
    Reduce,
    ReduceScatter,
    Scan,
    plan_all_reduce,
    plan_reduce,
    plan_reduce_scatter,
    plan_scan,
)
from .tensor_dicts import BroadcastTensorDict, plan_broadcast_tensor_dict
from .values import AllReduceValue, plan_all_reduce_value


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all members."""


def plan_barrier(site: Site, args: Barrier) -> Plan:
    """Nothing to agree on but that it is one."""
    return tensor_plan(site, "", lambda entry: entry.coordinator.barrier(entry.timeout))


@dataclass(frozen=True, slots=True)
class Ping:
    """Agree with all members, and do nothing else."""


def plan_ping(site: Site, args: Ping) -> Plan:
    """Nothing to agree on but that it is one; the backend is not entered."""
    return tensor_plan(site, "", lambda entry: None)


BARRIER = Operation("barrier", Barrier, plan_barrier, recorded=True)
BROADCAST = Operation("broadcast", Broadcast, plan_broadcast, recorded=True)
SCATTER = Operation("scatter", Scatter, plan_scatter, recorded=True)
GATHER = Operation("gather", Gather, plan_gather, recorded=True)
ALL_GATHER = Operation("all_gather", AllGather, plan_all_gather, recorded=True)
ALL_TO_ALL = Operation("all_to_all", AllToAll, plan_all_to_all, recorded=True)
REDUCE = Operation("reduce", Reduce, plan_reduce, recorded=True)
ALL_REDUCE = Operation("all_reduce", AllReduce, plan_all_reduce, recorded=True)
REDUCE_SCATTER = Operation("reduce_scatter", ReduceScatter, plan_reduce_scatter, recorded=True)
NEW_GROUP = Operation("new_group", NewGroup, plan_new_group)
DESTROY_GROUP = Operation("destroy_group", DestroyGroup, plan_destroy_group)
SCAN = Operation("scan", Scan, plan_scan, recorded=True)
BROADCAST_OBJECT = Operation("broadcast_object", BroadcastObject, plan_broadcast_object)
SCATTER_OBJECT = Operation("scatter_object", ScatterObject, plan_scatter_object)
GATHER_OBJECT = Operation("gather_object", GatherObject, plan_gather_object)
ALL_GATHER_OBJECT = Operation("all_gather_object", AllGatherObject, plan_all_gather_object)
ALL_REDUCE_VALUE = Operation("all_reduce_value", AllReduceValue, plan_all_reduce_value)
BROADCAST_TENSOR_DICT = Operation("broadcast_tensor_dict", BroadcastTensorDict, plan_broadcast_tensor_dict)
COALESCE = Operation("coalesce", Coalesce, plan_coalesce)
PING = Operation("ping", Ping, plan_ping, agreement=True)
REPLAY = Operation("replay", Replay, plan_replay)
RUN_PROGRAM = Operation("run_program", RunProgram, plan_run_program)
SEND = Operation("send", Send, plan_send)
RECV = Operation("recv", Recv, plan_recv)
SEND_OBJECT = Operation("send_object", SendObject, plan_send_object)
RECV_OBJECT = Operation("recv_object", RecvObject, plan_recv_object)
SEND_TENSOR_DICT = Operation("send_tensor_dict", SendTensorDict, plan_send_tensor_dict)
RECV_TENSOR_DICT = Operation("recv_tensor_dict", RecvTensorDict, plan_recv_tensor_dict)
NEW_QUEUE = Operation("new_queue", NewQueue, plan_new_queue)
ENQUEUE = Operation("enqueue", Enqueue, plan_enqueue)
DEQUEUE = Operation("dequeue", Dequeue, plan_dequeue)

OPERATIONS: dict[str, Operation[Any]] = {it.name: it for it in vars().values() if isinstance(it, Operation)}
"""Every operation by its name."""
