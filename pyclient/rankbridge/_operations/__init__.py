"""Every operation of the API, declared once: how its request is made, and how its response is read.

Each function makes a ``Call`` for one rank and sends nothing. Its name is the operation's name, its arguments
are what ``Rank.<name>`` and ``AsyncRank.<name>`` take, and ``OPERATIONS`` finds it by name. The arguments'
meanings are told there.
"""

from rankbridge._operations.collectives import (
    ReduceOp,
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
from rankbridge._operations.declare import (
    OPERATIONS,
    CallOptions,
    MemberOptions,
    Scope,
    find_operation,
    group_name,
    shares,
)
from rankbridge._operations.groups import describe_group, destroy_group, groups, new_group
from rankbridge._operations.operations import await_operation, cancel, poll, submit, submitting
from rankbridge._operations.ranks import form, status
from rankbridge._operations.refs import (
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

__all__ = [
    "OPERATIONS",
    "CallOptions",
    "Form",
    "MemberOptions",
    "ReduceOp",
    "RefPage",
    "Scope",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "await_operation",
    "barrier",
    "broadcast",
    "cancel",
    "close_session",
    "create",
    "describe",
    "describe_group",
    "destroy_group",
    "find_operation",
    "form",
    "gather",
    "get",
    "group_name",
    "groups",
    "list_refs",
    "new_group",
    "open_session",
    "poll",
    "put",
    "reduce",
    "reduce_scatter",
    "release",
    "renew_session",
    "scatter",
    "shares",
    "status",
    "submit",
    "submitting",
]
