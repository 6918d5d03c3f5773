"""Every operation of the API, declared once: how its request is made, and how its response is read.

A function for each makes a ``Call`` for one rank and sends nothing. ``OPERATIONS`` has it under the operation's name;
its arguments are those of ``Rank.<name>`` and ``AsyncRank.<name>``, which say what they mean. Those of collectives, and
of what members send each other, are derived from the proto (``derived.py``).
"""

from rankbridge._plan.operations.coalesced import Collective, coalesce, parts_of
from rankbridge._plan.operations.declare import (
    OPERATIONS,
    CallOptions,
    Calls,
    MemberOptions,
    Scope,
    find_operation,
    group_name,
)
from rankbridge._plan.operations.derived import GatherLayout, ReduceOp
from rankbridge._plan.operations.graphs import begin_capture, end_capture, graph_name, release_graph, replay
from rankbridge._plan.operations.groups import describe_group, destroy_group, groups, new_group
from rankbridge._plan.operations.objects import checked_list, checked_tensor_dict, refs_in
from rankbridge._plan.operations.operations import await_operation, cancel, ping, poll, submit, submitting
from rankbridge._plan.operations.point_to_point import Expected
from rankbridge._plan.operations.program import check_step, checked_program, parts_of_members, run_program
from rankbridge._plan.operations.queues import dequeue, enqueue, new_queue, queues, shut_down_queue
from rankbridge._plan.operations.ranks import form, status
from rankbridge._plan.operations.refs import (
    Form,
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
from rankbridge._plan.operations.shares import FirstArgument, given, shares

__all__ = [
    "OPERATIONS",
    "CallOptions",
    "Calls",
    "Collective",
    "Expected",
    "FirstArgument",
    "Form",
    "GatherLayout",
    "MemberOptions",
    "ReduceOp",
    "Scope",
    "await_operation",
    "begin_capture",
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
    "refs_in",
    "release",
    "release_graph",
    "renew_session",
    "replay",
    "run_program",
    "shares",
    "shut_down_queue",
    "status",
    "submit",
    "submitting",
]
