"""Every operation of the API, declared once: how its request is made, and how its response is read.

Each function makes a ``Call`` for one rank and sends nothing. Its name is the operation's name, its arguments
are what ``Rank.<name>`` and ``AsyncRank.<name>`` take, and ``OPERATIONS`` finds it by name. The arguments'
meanings are told there.
"""

from rankbridge._plan.operations.coalesced import Collective, coalesce, parts_of
from rankbridge._plan.operations.collectives import (
    ReduceOp,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    reduce,
    reduce_scatter,
    scan,
    scatter,
)
from rankbridge._plan.operations.declare import (
    OPERATIONS,
    CallOptions,
    Calls,
    MemberOptions,
    Scope,
    find_operation,
    group_name,
)
from rankbridge._plan.operations.gathers import GatherLayout, all_gather, gather
from rankbridge._plan.operations.graphs import begin_capture, end_capture, graph_name, release_graph, replay
from rankbridge._plan.operations.groups import describe_group, destroy_group, groups, new_group
from rankbridge._plan.operations.objects import (
    all_gather_object,
    all_reduce_value,
    broadcast_object,
    broadcast_tensor_dict,
    checked_list,
    checked_tensor_dict,
    gather_object,
    refs_in,
    scatter_object,
)
from rankbridge._plan.operations.operations import await_operation, cancel, ping, poll, submit, submitting
from rankbridge._plan.operations.point_to_point import (
    Expected,
    recv,
    recv_object,
    recv_tensor_dict,
    send,
    send_object,
    send_tensor_dict,
)
from rankbridge._plan.operations.program import check_step, checked_program, parts_of_members, run_program
from rankbridge._plan.operations.queues import dequeue, enqueue, new_queue, queues, shut_down_queue
from rankbridge._plan.operations.ranks import form, status
from rankbridge._plan.operations.refs import (
    Form,
    RefPage,
    close_session,
    create,
    describe,
    get,
    list_refs,
    open_session,
    put,
    release,
    renew_session,
)
from rankbridge._plan.operations.shared_memory import SHARED_CALLS
from rankbridge._plan.operations.shares import Given, given, shares

__all__ = [
    "OPERATIONS",
    "SHARED_CALLS",
    "CallOptions",
    "Calls",
    "Collective",
    "Expected",
    "Form",
    "GatherLayout",
    "Given",
    "MemberOptions",
    "ReduceOp",
    "RefPage",
    "Scope",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_reduce_value",
    "all_to_all",
    "await_operation",
    "barrier",
    "begin_capture",
    "broadcast",
    "broadcast_object",
    "broadcast_tensor_dict",
    "cancel",
    "check_step",
    "checked_list",
    "checked_program",
    "checked_tensor_dict",
    "close_session",
    "coalesce",
    "create",
    "dequeue",
    "describe",
    "describe_group",
    "destroy_group",
    "end_capture",
    "enqueue",
    "find_operation",
    "form",
    "gather",
    "gather_object",
    "get",
    "given",
    "graph_name",
    "group_name",
    "groups",
    "list_refs",
    "new_group",
    "new_queue",
    "open_session",
    "parts_of",
    "parts_of_members",
    "ping",
    "poll",
    "put",
    "queues",
    "recv",
    "recv_object",
    "recv_tensor_dict",
    "reduce",
    "reduce_scatter",
    "refs_in",
    "release",
    "release_graph",
    "renew_session",
    "replay",
    "run_program",
    "scan",
    "scatter",
    "scatter_object",
    "send",
    "send_object",
    "send_tensor_dict",
    "shares",
    "shut_down_queue",
    "status",
    "submit",
    "submitting",
]
