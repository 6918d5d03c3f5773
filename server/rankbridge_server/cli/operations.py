"""The operations of `rankbridge call` that the proto declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "ints", "rows", "flag", "choice", "text"]
"""What an argument's option takes. ints: numbers with commas between; rows: such lists with slashes between."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that is given by name. `face`: "gang" or "rank": whose method has it; empty: both have."""

    name: str
    kind: Kind
    help: str
    choices: tuple[str, ...] = ()
    required: bool = False
    face: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation. `brings`: as in the proto's `Brings`. `of_gang`: all members of a group take part."""

    name: str
    help: str
    brings: str
    of_gang: bool
    arguments: tuple[Argument, ...] = ()


OPERATIONS: tuple[Operation, ...] = (
    # --- of operations: written by scripts/methods.py from the proto
    Operation("barrier", "Returns when every member has called.", "nothing", True, ()),
    Operation(
        "broadcast",
        "Gives every member a tensor equal to the source's.",
        "ref",
        True,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group whose tensor is sent, 0 to the group's size - 1.",
            ),
            Argument(
                "in_place",
                "flag",
                "The result takes the place of the input, under the same ref. Otherwise it gets a new ref.",
            ),
        ),
    ),
    Operation(
        "gather",
        "Gives the destination the members' tensors, put together in group order; the others none.",
        "ref",
        True,
        (
            Argument(
                "dst_rank_in_group", "int", "Rank in the group that receives, 0 to the group's size - 1."
            ),
            Argument(
                "dim",
                "int",
                "Dimension along which to concatenate; negative counts from the last. Not given: -1, "
                "the last. Of a stack: the place of the new dimension, 0 if absent. Of a list, "
                "nothing is laid out along it.",
            ),
            Argument(
                "sizes",
                "ints",
                "Size of every member's tensor along dim, by rank in group, each 0 or more; this "
                "rank's own is its tensor's. The same on all members. Not given: all tensors are "
                "alike.",
            ),
            Argument(
                "layout",
                "choice",
                "How the tensors are put together: concatenated (one tensor, the members' side by "
                "side along dim), stacked (one with one dimension more, at place dim, along which "
                "they follow one another) or list (one for each member). (default: concatenated)",
                choices=("concatenated", "stacked", "list"),
            ),
            Argument(
                "ragged",
                "flag",
                "Shapes may differ, as far as the layout allows, and the members exchange them; sizes"
                " must be empty.",
            ),
        ),
    ),
    Operation(
        "all_reduce",
        "Gives every member the element-wise reduction of all members' tensors.",
        "ref",
        True,
        (
            Argument(
                "op",
                "choice",
                "How elements are combined: sum (of bool: or), product (of bool: and), min, max, avg "
                "(no integers), or of the bits of integers and bools band, bor, bxor. (default: sum)",
                choices=("sum", "product", "min", "max", "avg", "band", "bor", "bxor"),
            ),
            Argument(
                "in_place",
                "flag",
                "The result takes the place of the input, under the same ref. Otherwise it gets a new ref.",
            ),
        ),
    ),
    Operation(
        "all_gather",
        "Gives every member all members' tensors, put together in group order.",
        "ref",
        True,
        (
            Argument(
                "dim",
                "int",
                "Dimension along which to concatenate; negative counts from the last. Not given: -1, "
                "the last. Of a stack: the place of the new dimension, 0 if absent. Of a list, "
                "nothing is laid out along it.",
            ),
            Argument(
                "sizes",
                "ints",
                "Size of every member's tensor along dim, by rank in group, each 0 or more; this "
                "rank's own is its tensor's. The same on all members. Not given: all tensors are "
                "alike.",
            ),
            Argument(
                "layout",
                "choice",
                "How the tensors are put together: concatenated (one tensor, the members' side by "
                "side along dim), stacked (one with one dimension more, at place dim, along which "
                "they follow one another) or list (one for each member). (default: concatenated)",
                choices=("concatenated", "stacked", "list"),
            ),
            Argument(
                "ragged",
                "flag",
                "Shapes may differ, as far as the layout allows, and the members exchange them; sizes"
                " must be empty.",
            ),
        ),
    ),
    Operation(
        "reduce",
        "Gives the destination the element-wise reduction of all members' tensors; the others none.",
        "ref",
        True,
        (
            Argument(
                "op",
                "choice",
                "How elements are combined: sum (of bool: or), product (of bool: and), min, max, avg "
                "(no integers), or of the bits of integers and bools band, bor, bxor. (default: sum)",
                choices=("sum", "product", "min", "max", "avg", "band", "bor", "bxor"),
            ),
            Argument(
                "dst_rank_in_group", "int", "Rank in the group that receives, 0 to the group's size - 1."
            ),
        ),
    ),
    Operation(
        "scatter",
        "Gives every member its part of the source's tensor, divided in group order.",
        "ref",
        True,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group whose tensor is divided, 0 to the group's size - 1.",
            ),
            Argument(
                "dim", "int", "Dimension along which to divide; negative counts from the last. 0: the first."
            ),
            Argument(
                "sizes",
                "ints",
                "Size of every member's part along dim, by rank in group, each 0 or more; their sum "
                "is the size of the source's tensor along dim. The same on all members. Not given: "
                "equal parts.",
            ),
        ),
    ),
    Operation(
        "reduce_scatter",
        "Gives every member its part of the element-wise reduction of all members' tensors, "
        "divided in group order.",
        "ref",
        True,
        (
            Argument(
                "op",
                "choice",
                "How elements are combined: sum (of bool: or), product (of bool: and), min, max, avg "
                "(no integers), or of the bits of integers and bools band, bor, bxor. (default: sum)",
                choices=("sum", "product", "min", "max", "avg", "band", "bor", "bxor"),
            ),
            Argument(
                "dim",
                "int",
                "Dimension along which to divide; negative counts from the last. Not given: -1, the last.",
            ),
            Argument(
                "sizes",
                "ints",
                "Size of every member's part along dim, by rank in group, each 0 or more; their sum "
                "is the tensor's size along dim. The same on all members. Not given: equal parts.",
            ),
        ),
    ),
    Operation(
        "all_to_all",
        "Gives every member its parts of all members' tensors, concatenated in group order.",
        "ref",
        True,
        (
            Argument(
                "dim",
                "int",
                "Dimension along which to divide and to concatenate; negative counts from the last. "
                "0: the first.",
            ),
            Argument(
                "sizes",
                "rows",
                "A row for each member, in group order: size along dim of what this rank sends to "
                "each member, by rank in group, each 0 or more; they add up to the tensor's. Not "
                "given: equal parts, of tensors that are all alike.",
                face="gang",
            ),
            Argument(
                "input_sizes",
                "ints",
                "Size along dim of what this rank sends to each member, by rank in group, each 0 or "
                "more; they add up to the tensor's. Not given: equal parts, of tensors that are all "
                "alike.",
                face="rank",
            ),
            Argument(
                "output_sizes",
                "ints",
                "Size along dim of what this rank gets from each member, by rank in group, each 0 or "
                "more: what that member's input_sizes say of this rank. Empty if input_sizes is.",
                face="rank",
            ),
        ),
    ),
    Operation(
        "scan",
        "Gives member m the element-wise reduction of the tensors of members 0 to m.",
        "ref",
        True,
        (
            Argument(
                "op",
                "choice",
                "How elements are combined: any reduce op of AllReduce except avg. (default: sum)",
                choices=("sum", "product", "min", "max", "avg", "band", "bor", "bxor"),
            ),
            Argument(
                "exclusive",
                "flag",
                "Of members 0 to m - 1, for member 0 zeros; of sums only. Otherwise of members 0 to m.",
            ),
        ),
    ),
    Operation(
        "broadcast_object",
        "Gives every member the source's value.",
        "source_value",
        True,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group whose value is sent, 0 to the group's size - 1.",
            ),
        ),
    ),
    Operation(
        "scatter_object",
        "Gives every member its own of the source's values.",
        "source_values",
        True,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group whose values are sent, 0 to the group's size - 1.",
            ),
        ),
    ),
    Operation(
        "gather_object",
        "Gives the destination a list of all members' values, in group order; the others none.",
        "value",
        True,
        (
            Argument(
                "dst_rank_in_group", "int", "Rank in the group that receives, 0 to the group's size - 1."
            ),
        ),
    ),
    Operation(
        "all_gather_object",
        "Gives every member a list of all members' values, in group order.",
        "value",
        True,
        (),
    ),
    Operation(
        "all_reduce_value",
        "Gives every member the reduction of all members' numbers.",
        "number",
        True,
        (
            Argument(
                "op",
                "choice",
                "How they are combined, as AllReduce does. (default: sum) Bools have no avg, floats "
                "no bitwise op; the average of ints is a float.",
                choices=("sum", "product", "min", "max", "avg", "band", "bor", "bxor"),
            ),
        ),
    ),
    Operation(
        "broadcast_tensor_dict",
        "Gives every member the source's map, with a tensor of its own for each of the source's.",
        "source_dict",
        True,
        (
            Argument(
                "src_rank_in_group", "int", "Rank in the group whose map is sent, 0 to the group's size - 1."
            ),
        ),
    ),
    Operation(
        "send",
        "Sends a tensor to one member, and returns when it has left this rank.",
        "ref",
        False,
        (
            Argument(
                "dst_rank_in_group",
                "int",
                "Rank in the group that receives, 0 to the group's size - 1, not this one.",
                required=True,
            ),
            Argument("tag", "int", "Separates messages between the same two members, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "recv",
        "Receives a tensor from one member, or from any.",
        "expected",
        False,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group that sends, 0 to the group's size - 1, not this one. (default: any)",
            ),
            Argument("tag", "int", "Tag of the message, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "send_object",
        "Sends a value to one member. A ref in it travels as the handle that it is.",
        "value",
        False,
        (
            Argument(
                "dst_rank_in_group",
                "int",
                "Rank in the group that receives, 0 to the group's size - 1, not this one.",
                required=True,
            ),
            Argument("tag", "int", "Separates messages between the same two members, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "recv_object",
        "Receives a value from one member, or from any.",
        "nothing",
        False,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group that sends, 0 to the group's size - 1, not this one. (default: any)",
            ),
            Argument("tag", "int", "Tag of the message, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "send_tensor_dict",
        "Sends a map of tensors to one member.",
        "dict",
        False,
        (
            Argument(
                "dst_rank_in_group",
                "int",
                "Rank in the group that receives, 0 to the group's size - 1, not this one.",
                required=True,
            ),
            Argument("tag", "int", "Separates messages between the same two members, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "recv_tensor_dict",
        "Receives a map of tensors from one member, or from any.",
        "nothing",
        False,
        (
            Argument(
                "src_rank_in_group",
                "int",
                "Rank in the group that sends, 0 to the group's size - 1, not this one. (default: any)",
            ),
            Argument("tag", "int", "Tag of the message, 0 to 2**32 - 1."),
        ),
    ),
    Operation(
        "enqueue",
        "Writes a value, on the writer. Waits while a reader has `max_chunks` unread.",
        "value",
        False,
        (Argument("queue", "text", "Name of the queue.", required=True),),
    ),
    Operation(
        "dequeue",
        "Reads the next value, on a reader. Waits until there is one.",
        "nothing",
        False,
        (Argument("queue", "text", "Name of the queue.", required=True),),
    ),
    # --- end of operations
)
