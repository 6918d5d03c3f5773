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

from rankbridge._async.compat.vllm import AsyncGroupCoordinator as AsyncGroupCoordinator
from rankbridge._async.events import AsyncEvents as AsyncEvents
from rankbridge._async.function import AsyncFunctionCall as AsyncFunctionCall, AsyncReports as AsyncReports
from rankbridge._async.gang import AsyncGang as AsyncGang, AsyncGangFunction as AsyncGangFunction
from rankbridge._async.growths import AsyncRecordWatch as AsyncRecordWatch
from rankbridge._async.hold import AsyncHold as AsyncHold
from rankbridge._async.queue import AsyncQueue as AsyncQueue
from rankbridge._async.rank import AsyncRank as AsyncRank, AsyncRankFunction as AsyncRankFunction
from rankbridge._async.stream import AsyncGangStream as AsyncGangStream, AsyncStreamed as AsyncStreamed
from rankbridge._async.submitted import AsyncSubmitted as AsyncSubmitted
from rankbridge._async.work import AsyncWork as AsyncWork
from rankbridge._plan.call_site import at_site as at_site
from rankbridge._plan.dividing import get_reduce_divide_factor as get_reduce_divide_factor
from rankbridge._plan.events import (
    Event as Event,
    EventKind as EventKind,
    FormedEvent as FormedEvent,
    MismatchEvent as MismatchEvent,
    OverEvent as OverEvent,
    PeerMissingEvent as PeerMissingEvent,
    StragglerEvent as StragglerEvent,
    UnknownEvent as UnknownEvent,
    WatchEnded as WatchEnded,
    Watching as Watching,
)
from rankbridge._plan.export.clocks import clock_offsets as clock_offsets
from rankbridge._plan.export.flight_recorder import flight_recorder as flight_recorder
from rankbridge._plan.export.perfetto import trace as trace
from rankbridge._plan.export.speedscope import speedscope as speedscope
from rankbridge._plan.functions import (
    Arguments as Arguments,
    Each as Each,
    FunctionDescription as FunctionDescription,
    Parameter as Parameter,
    ParameterKind as ParameterKind,
    Report as Report,
)
from rankbridge._plan.graph import Graph as Graph
from rankbridge._plan.groups import Group as Group, Member as Member, Place as Place
from rankbridge._plan.holding import (
    FrameVariables as FrameVariables,
    HeldCall as HeldCall,
    HeldInput as HeldInput,
    Inspection as Inspection,
)
from rankbridge._plan.inits import (
    Init as Init,
    arange as arange,
    full as full,
    normal as normal,
    uniform as uniform,
    zeros as zeros,
)
from rankbridge._plan.layout import Layout as Layout
from rankbridge._plan.mesh import Mesh as Mesh
from rankbridge._plan.metrics import MetricFamily as MetricFamily, MetricSample as MetricSample
from rankbridge._plan.named import (
    Comparison as Comparison,
    Difference as Difference,
    NamedTensor as NamedTensor,
)
from rankbridge._plan.operations import (
    CallOptions as CallOptions,
    Collective as Collective,
    Expected as Expected,
    GatherLayout as GatherLayout,
    MemberOptions as MemberOptions,
    ReduceOp as ReduceOp,
)
from rankbridge._plan.pending import (
    PendingAdmission as PendingAdmission,
    PendingOperation as PendingOperation,
    RankPending as RankPending,
)
from rankbridge._plan.positions import Position as Position
from rankbridge._plan.program import Program as Program
from rankbridge._plan.program_steps import Named as Named
from rankbridge._plan.queue import NamedQueue as NamedQueue, QueueDescription as QueueDescription
from rankbridge._plan.record import (
    RecordedOperation as RecordedOperation,
    RecordGrowth as RecordGrowth,
    StackFrame as StackFrame,
    ThreadStack as ThreadStack,
)
from rankbridge._plan.ref import Ref as Ref
from rankbridge._plan.reports import (
    ImbalanceReport as ImbalanceReport,
    StepImbalance as StepImbalance,
    StepTime as StepTime,
    TimeReport as TimeReport,
    report_load_imbalance as report_load_imbalance,
    report_time_info as report_time_info,
)
from rankbridge._plan.rounds import Round as Round, Turn as Turn, rounds_of as rounds_of
from rankbridge._plan.status import (
    Abilities as Abilities,
    Formed as Formed,
    OperationState as OperationState,
    OperationStatus as OperationStatus,
    RankStatus as RankStatus,
    SessionUsage as SessionUsage,
)
from rankbridge._plan.summary import Summary as Summary
from rankbridge._plan.tensor import Array as Array, Tensor as Tensor, TensorLike as TensorLike
from rankbridge._plan.timeline import TimelineEntry as TimelineEntry, timeline as timeline
from rankbridge._plan.values import PyValue as PyValue, from_value as from_value, to_value as to_value
from rankbridge._plan.verdict import (
    Culprit as Culprit,
    Verdict as Verdict,
    VerdictSide as VerdictSide,
    VerdictWait as VerdictWait,
)
from rankbridge._sync.compat.vllm import GroupCoordinator as GroupCoordinator
from rankbridge._sync.events import Events as Events
from rankbridge._sync.function import FunctionCall as FunctionCall, Reports as Reports
from rankbridge._sync.gang import Gang as Gang, GangFunction as GangFunction, connect as connect
from rankbridge._sync.growths import RecordWatch as RecordWatch
from rankbridge._sync.hold import Hold as Hold
from rankbridge._sync.queue import Queue as Queue
from rankbridge._sync.rank import Rank as Rank, RankFunction as RankFunction
from rankbridge._sync.stream import GangStream as GangStream, Streamed as Streamed
from rankbridge._sync.submitted import Submitted as Submitted
from rankbridge._sync.work import Work as Work
from rankbridge._transport.aio.pending import AsyncPending as AsyncPending
from rankbridge._transport.shared_memory import Transfers as Transfers
from rankbridge._transport.targets import Target as Target
from rankbridge._transport.threads.pending import Pending as Pending
from rankbridge.connecting import aconnect as aconnect
from rankbridge.errors import *  # noqa: F403
