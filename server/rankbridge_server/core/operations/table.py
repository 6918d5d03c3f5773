"""Every operation, declared once: its name, and what is checked, agreed on, and run.

To add one: write its arguments and a function from site and arguments to a plan beside those of its kind, and declare
it below. The wire's side of it is a message with options in `proto/`, and one line in `service/operations/`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..groups.operations import DestroyGroup, NewGroup, plan_destroy_group, plan_new_group
from ..programs.plan import plan_coalesce, plan_run_program
from ..programs.program import Coalesce, ProgramLoop, ProgramOperation, ProgramStep, Replay, RunProgram
from ..programs.replays import plan_replay
from ..queues.operations import Dequeue, Enqueue, NewQueue, plan_dequeue, plan_enqueue, plan_new_queue
from .all_to_all import AllToAll, plan_all_to_all
from .gathers import AllGather, Gather, GatherLayout, plan_all_gather, plan_gather
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
from .operation import Operation, Plan, Site, TensorPlan
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
from .tensor_dicts import BroadcastTensorDict, GivenDict, plan_broadcast_tensor_dict
from .values import AllReduceValue, plan_all_reduce_value

__all__ = [
    "ALL_GATHER",
    "ALL_GATHER_OBJECT",
    "ALL_REDUCE",
    "ALL_REDUCE_VALUE",
    "ALL_TO_ALL",
    "BARRIER",
    "BROADCAST",
    "BROADCAST_OBJECT",
    "BROADCAST_TENSOR_DICT",
    "COALESCE",
    "DEQUEUE",
    "DESTROY_GROUP",
    "ENQUEUE",
    "GATHER",
    "GATHER_OBJECT",
    "NEW_GROUP",
    "NEW_QUEUE",
    "PING",
    "RECV",
    "RECV_OBJECT",
    "RECV_TENSOR_DICT",
    "REDUCE",
    "REDUCE_SCATTER",
    "REPLAY",
    "RUN_PROGRAM",
    "SCAN",
    "SCATTER",
    "SCATTER_OBJECT",
    "SEND",
    "SEND_OBJECT",
    "SEND_TENSOR_DICT",
    "AllGather",
    "AllGatherObject",
    "AllReduce",
    "AllReduceValue",
    "AllToAll",
    "Barrier",
    "Broadcast",
    "BroadcastObject",
    "BroadcastTensorDict",
    "Coalesce",
    "Dequeue",
    "DestroyGroup",
    "Enqueue",
    "Gather",
    "GatherLayout",
    "GatherObject",
    "GivenDict",
    "NewGroup",
    "NewQueue",
    "Operation",
    "Ping",
    "ProgramLoop",
    "ProgramOperation",
    "ProgramStep",
    "Recv",
    "RecvObject",
    "RecvTensorDict",
    "Reduce",
    "ReduceScatter",
    "Replay",
    "RunProgram",
    "Scan",
    "Scatter",
    "ScatterObject",
    "Send",
    "SendObject",
    "SendTensorDict",
]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all members."""


def plan_barrier(site: Site, args: Barrier) -> Plan:
    """Nothing to agree on but that it is one."""
    return TensorPlan(site, "", lambda entry: entry.coordinator.barrier(entry.timeout))


@dataclass(frozen=True, slots=True)
class Ping:
    """Agree with all members, and do nothing else."""


def plan_ping(site: Site, args: Ping) -> Plan:
    """Nothing to agree on but that it is one; the backend is not entered."""
    return TensorPlan(site, "", lambda entry: None)


BARRIER: Operation[Barrier] = Operation("barrier", plan_barrier, recorded=True)
BROADCAST: Operation[Broadcast] = Operation("broadcast", plan_broadcast, recorded=True)
SCATTER: Operation[Scatter] = Operation("scatter", plan_scatter, recorded=True)
GATHER: Operation[Gather] = Operation("gather", plan_gather, recorded=True)
ALL_GATHER: Operation[AllGather] = Operation("all_gather", plan_all_gather, recorded=True)
ALL_TO_ALL: Operation[AllToAll] = Operation("all_to_all", plan_all_to_all, recorded=True)
REDUCE: Operation[Reduce] = Operation("reduce", plan_reduce, recorded=True)
ALL_REDUCE: Operation[AllReduce] = Operation("all_reduce", plan_all_reduce, recorded=True)
REDUCE_SCATTER: Operation[ReduceScatter] = Operation("reduce_scatter", plan_reduce_scatter, recorded=True)
NEW_GROUP: Operation[NewGroup] = Operation("new_group", plan_new_group)
DESTROY_GROUP: Operation[DestroyGroup] = Operation("destroy_group", plan_destroy_group)
SCAN: Operation[Scan] = Operation("scan", plan_scan, recorded=True)
BROADCAST_OBJECT: Operation[BroadcastObject] = Operation("broadcast_object", plan_broadcast_object)
SCATTER_OBJECT: Operation[ScatterObject] = Operation("scatter_object", plan_scatter_object)
GATHER_OBJECT: Operation[GatherObject] = Operation("gather_object", plan_gather_object)
ALL_GATHER_OBJECT: Operation[AllGatherObject] = Operation("all_gather_object", plan_all_gather_object)
ALL_REDUCE_VALUE: Operation[AllReduceValue] = Operation("all_reduce_value", plan_all_reduce_value)
BROADCAST_TENSOR_DICT: Operation[BroadcastTensorDict] = Operation(
    "broadcast_tensor_dict", plan_broadcast_tensor_dict
)
COALESCE: Operation[Coalesce] = Operation("coalesce", plan_coalesce)
PING: Operation[Ping] = Operation("ping", plan_ping, agreement=True)
REPLAY: Operation[Replay] = Operation("replay", plan_replay)
RUN_PROGRAM: Operation[RunProgram] = Operation("run_program", plan_run_program)
SEND: Operation[Send] = Operation("send", plan_send)
RECV: Operation[Recv] = Operation("recv", plan_recv)
SEND_OBJECT: Operation[SendObject] = Operation("send_object", plan_send_object)
RECV_OBJECT: Operation[RecvObject] = Operation("recv_object", plan_recv_object)
SEND_TENSOR_DICT: Operation[SendTensorDict] = Operation("send_tensor_dict", plan_send_tensor_dict)
RECV_TENSOR_DICT: Operation[RecvTensorDict] = Operation("recv_tensor_dict", plan_recv_tensor_dict)
NEW_QUEUE: Operation[NewQueue] = Operation("new_queue", plan_new_queue)
ENQUEUE: Operation[Enqueue] = Operation("enqueue", plan_enqueue)
DEQUEUE: Operation[Dequeue] = Operation("dequeue", plan_dequeue)
