"""Every operation of the API, declared once: how its request is made, and how its response is read.

A function for each makes a ``Call`` for one rank and sends nothing. ``OPERATIONS`` has it under the operation's name;
its arguments are those of ``Rank.<name>`` and ``AsyncRank.<name>``, which say what they mean. Those of collectives, and
of what members send each other, are derived from the proto (``derived.py``).
"""

from rankbridge._plan.operations.coalesced import (
    Collective as Collective,
    coalesce as coalesce,
    parts_of as parts_of,
)
from rankbridge._plan.operations.declare import (
    OPERATIONS as OPERATIONS,
    CallOptions as CallOptions,
    Calls as Calls,
    MemberOptions as MemberOptions,
    Scope as Scope,
    find_operation as find_operation,
    group_name as group_name,
)
from rankbridge._plan.operations.derived import GatherLayout as GatherLayout, ReduceOp as ReduceOp
from rankbridge._plan.operations.functions import (
    call_function as call_function,
    functions as functions,
    reports as reports,
)
from rankbridge._plan.operations.graphs import (
    begin_capture as begin_capture,
    end_capture as end_capture,
    graph_name as graph_name,
    release_graph as release_graph,
    replay as replay,
)
from rankbridge._plan.operations.groups import (
    describe_group as describe_group,
    destroy_group as destroy_group,
    groups as groups,
    new_group as new_group,
)
from rankbridge._plan.operations.objects import (
    checked_list as checked_list,
    checked_tensor_dict as checked_tensor_dict,
    refs_in as refs_in,
)
from rankbridge._plan.operations.operations import (
    await_operation as await_operation,
    cancel as cancel,
    ping as ping,
    poll as poll,
    submit as submit,
    submitting as submitting,
)
from rankbridge._plan.operations.point_to_point import Expected as Expected
from rankbridge._plan.operations.program import (
    check_step as check_step,
    checked_program as checked_program,
    parts_of_members as parts_of_members,
    run_program as run_program,
)
from rankbridge._plan.operations.queues import (
    dequeue as dequeue,
    enqueue as enqueue,
    new_queue as new_queue,
    queues as queues,
    shut_down_queue as shut_down_queue,
)
from rankbridge._plan.operations.ranks import (
    diagnose as diagnose,
    evidence as evidence,
    form as form,
    kill as kill,
    metrics as metrics,
    pending as pending,
    record as record,
    stacks as stacks,
    status as status,
    watch_record as watch_record,
)
from rankbridge._plan.operations.refs import (
    Form as Form,
    close_session as close_session,
    create as create,
    describe as describe,
    get as get,
    list_refs as list_refs,
    open_session as open_session,
    put as put,
    release as release,
    renew_session as renew_session,
    summarize as summarize,
)
from rankbridge._plan.operations.shares import (
    FirstArgument as FirstArgument,
    given as given,
    shares as shares,
)
