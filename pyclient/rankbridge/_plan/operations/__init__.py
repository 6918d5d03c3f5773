"""Every operation of the API, declared once: how its request is made, and how its response is read.

A function for each makes a ``Call`` for one rank and sends nothing. ``OPERATIONS`` has it under the operation's name;
its arguments are those of ``Rank.<name>`` and ``AsyncRank.<name>``, which say what they mean. Those of collectives, and
of what members send each other, are derived from the proto (``derived.py``).
"""

from rankbridge._plan.operations.coalesced import Collective as Collective
from rankbridge._plan.operations.coalesced import coalesce as coalesce
from rankbridge._plan.operations.coalesced import parts_of as parts_of
from rankbridge._plan.operations.declare import OPERATIONS as OPERATIONS
from rankbridge._plan.operations.declare import CallOptions as CallOptions
from rankbridge._plan.operations.declare import Calls as Calls
from rankbridge._plan.operations.declare import MemberOptions as MemberOptions
from rankbridge._plan.operations.declare import Scope as Scope
from rankbridge._plan.operations.declare import find_operation as find_operation
from rankbridge._plan.operations.declare import group_name as group_name
from rankbridge._plan.operations.derived import GatherLayout as GatherLayout
from rankbridge._plan.operations.derived import ReduceOp as ReduceOp
from rankbridge._plan.operations.graphs import begin_capture as begin_capture
from rankbridge._plan.operations.graphs import end_capture as end_capture
from rankbridge._plan.operations.graphs import graph_name as graph_name
from rankbridge._plan.operations.graphs import release_graph as release_graph
from rankbridge._plan.operations.graphs import replay as replay
from rankbridge._plan.operations.groups import describe_group as describe_group
from rankbridge._plan.operations.groups import destroy_group as destroy_group
from rankbridge._plan.operations.groups import groups as groups
from rankbridge._plan.operations.groups import new_group as new_group
from rankbridge._plan.operations.objects import checked_list as checked_list
from rankbridge._plan.operations.objects import checked_tensor_dict as checked_tensor_dict
from rankbridge._plan.operations.objects import refs_in as refs_in
from rankbridge._plan.operations.operations import await_operation as await_operation
from rankbridge._plan.operations.operations import cancel as cancel
from rankbridge._plan.operations.operations import ping as ping
from rankbridge._plan.operations.operations import poll as poll
from rankbridge._plan.operations.operations import submit as submit
from rankbridge._plan.operations.operations import submitting as submitting
from rankbridge._plan.operations.point_to_point import Expected as Expected
from rankbridge._plan.operations.program import check_step as check_step
from rankbridge._plan.operations.program import checked_program as checked_program
from rankbridge._plan.operations.program import parts_of_members as parts_of_members
from rankbridge._plan.operations.program import run_program as run_program
from rankbridge._plan.operations.queues import dequeue as dequeue
from rankbridge._plan.operations.queues import enqueue as enqueue
from rankbridge._plan.operations.queues import new_queue as new_queue
from rankbridge._plan.operations.queues import queues as queues
from rankbridge._plan.operations.queues import shut_down_queue as shut_down_queue
from rankbridge._plan.operations.ranks import form as form
from rankbridge._plan.operations.ranks import status as status
from rankbridge._plan.operations.refs import Form as Form
from rankbridge._plan.operations.refs import close_session as close_session
from rankbridge._plan.operations.refs import create as create
from rankbridge._plan.operations.refs import describe as describe
from rankbridge._plan.operations.refs import get as get
from rankbridge._plan.operations.refs import list_refs as list_refs
from rankbridge._plan.operations.refs import open_session as open_session
from rankbridge._plan.operations.refs import put as put
from rankbridge._plan.operations.refs import release as release
from rankbridge._plan.operations.refs import renew_session as renew_session
from rankbridge._plan.operations.shares import FirstArgument as FirstArgument
from rankbridge._plan.operations.shares import given as given
from rankbridge._plan.operations.shares import shares as shares
