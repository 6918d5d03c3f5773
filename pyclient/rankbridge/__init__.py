"""The Python client of rankbridge: collectives of a torch.distributed job, driven from outside.

``connect`` gives a ``Gang``; its methods drive all ranks at once, and ``gang[2]`` is one of them. Tensors
stay on their ranks; a ``Ref`` stands for each. ``aconnect`` gives the same for asyncio::

    with rankbridge.connect("endpoints.json") as gang:
        refs = gang.put([numpy.full(4, rank, numpy.float32) for rank in range(len(gang))])
        total = gang.all_reduce(refs, op="sum")
        print(gang[2].get(total[2]))

Everything raised on purpose is a ``RankBridgeError``; the tree is in ``rankbridge.errors``. This package
needs no torch; it takes and gives torch tensors where torch is installed and asked for.
"""

from rankbridge._async.compat.vllm import AsyncGroupCoordinator
from rankbridge._async.events import AsyncEvents
from rankbridge._async.gang import AsyncGang, aconnect
from rankbridge._async.queue import AsyncQueue
from rankbridge._async.rank import AsyncRank
from rankbridge._async.stream import AsyncGangStream, AsyncStreamed
from rankbridge._async.submitted import AsyncSubmitted
from rankbridge._async.work import AsyncWork
from rankbridge._plan.dividing import get_reduce_divide_factor
from rankbridge._plan.events import (
    Event,
    EventKind,
    FormedEvent,
    MismatchEvent,
    OverEvent,
    PeerMissingEvent,
    Position,
    StragglerEvent,
    UnknownEvent,
    WatchEnded,
    Watching,
)
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group, Member, Place
from rankbridge._plan.inits import Init, arange, full, normal, uniform, zeros
from rankbridge._plan.layout import Layout
from rankbridge._plan.mesh import Mesh
from rankbridge._plan.operations import (
    CallOptions,
    Collective,
    Expected,
    GatherLayout,
    MemberOptions,
    ReduceOp,
)
from rankbridge._plan.program import Program
from rankbridge._plan.program_steps import Named
from rankbridge._plan.queue import NamedQueue, QueueDescription
from rankbridge._plan.ref import Ref
from rankbridge._plan.reports import (
    ImbalanceReport,
    StepImbalance,
    StepTime,
    TimeReport,
    report_load_imbalance,
    report_time_info,
)
from rankbridge._plan.rounds import Round, Turn, rounds_of
from rankbridge._plan.status import (
    Abilities,
    Formed,
    OperationState,
    OperationStatus,
    RankStatus,
    SessionUsage,
)
from rankbridge._plan.tensor import Array, Tensor, TensorLike
from rankbridge._plan.values import PyValue, from_value, to_value
from rankbridge._sync.compat.vllm import GroupCoordinator
from rankbridge._sync.events import Events
from rankbridge._sync.gang import Gang, connect
from rankbridge._sync.queue import Queue
from rankbridge._sync.rank import Rank
from rankbridge._sync.stream import GangStream, Streamed
from rankbridge._sync.submitted import Submitted
from rankbridge._sync.work import Work
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.shared_memory import Transfers
from rankbridge._transport.targets import Target
from rankbridge._transport.threads.pending import Pending
from rankbridge.errors import *  # noqa: F403
from rankbridge.errors import __all__ as _errors

__all__ = [
    "Abilities",
    "Array",
    "AsyncEvents",
    "AsyncGang",
    "AsyncGangStream",
    "AsyncGroupCoordinator",
    "AsyncPending",
    "AsyncQueue",
    "AsyncRank",
    "AsyncStreamed",
    "AsyncSubmitted",
    "AsyncWork",
    "CallOptions",
    "Collective",
    "Event",
    "EventKind",
    "Events",
    "Expected",
    "Formed",
    "FormedEvent",
    "Gang",
    "GangStream",
    "GatherLayout",
    "Graph",
    "Group",
    "GroupCoordinator",
    "ImbalanceReport",
    "Init",
    "Layout",
    "Member",
    "MemberOptions",
    "Mesh",
    "MismatchEvent",
    "Named",
    "NamedQueue",
    "OperationState",
    "OperationStatus",
    "OverEvent",
    "PeerMissingEvent",
    "Pending",
    "Place",
    "Position",
    "Program",
    "PyValue",
    "Queue",
    "QueueDescription",
    "Rank",
    "RankStatus",
    "ReduceOp",
    "Ref",
    "Round",
    "SessionUsage",
    "StepImbalance",
    "StepTime",
    "StragglerEvent",
    "Streamed",
    "Submitted",
    "Target",
    "Tensor",
    "TensorLike",
    "TimeReport",
    "Transfers",
    "Turn",
    "UnknownEvent",
    "WatchEnded",
    "Watching",
    "Work",
    "aconnect",
    "arange",
    "connect",
    "from_value",
    "full",
    "get_reduce_divide_factor",
    "normal",
    "report_load_imbalance",
    "report_time_info",
    "rounds_of",
    "to_value",
    "uniform",
    "zeros",
]
__all__ += _errors
