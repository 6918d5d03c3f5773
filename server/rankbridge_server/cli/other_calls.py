"""What `rankbridge call` calls that is no operation of a group's members: tensors, groups, queues, generations."""

from __future__ import annotations

import click

from . import arguments
from .calling import COMMON, OF_CALL, command, given
from .options import Option

_RANK = Option("--rank", type=int, metavar="N", required=True, help="the rank")


def commands() -> list[click.Command]:
    """All of them."""
    name = click.Argument(["name"])
    some = click.Argument(["refs"], nargs=-1, required=True)
    return [
        command(
            "create",
            "Make a tensor on every rank.",
            [
                click.Argument(["dtype"]),
                click.Argument(["shape"], type=arguments.ints),
                Option(
                    "--init",
                    type=arguments.init,
                    metavar="INIT",
                    help="zeros (the default), full:1.5, arange:0:2, uniform:SEED:LOW:HIGH, "
                    "normal:SEED:MEAN:STD",
                ),
            ],
            lambda gang, options: gang.create(options.dtype, options.shape, init=options.init),
        ),
        command(
            "put",
            "Put a tensor of a JSON list on every rank.",
            [click.Argument(["value"]), Option("--dtype", default="float32")],
            lambda gang, options: gang.put_same(arguments.array(options.value, options.dtype)),
        ),
        command(
            "get",
            "Fetch the elements of tensors.",
            [some],
            lambda gang, options: gang.get(arguments.refs(gang, options.refs)),
        ),
        command(
            "describe",
            "Ask for the dtype and the shape of tensors.",
            [some],
            lambda gang, options: gang.describe(arguments.refs(gang, options.refs)),
        ),
        command(
            "list",
            "List the refs of the ranks' shared sessions.",
            [],
            lambda gang, options: [ref for refs in gang.list_refs() for ref in refs],
        ),
        command(
            "release",
            "Release tensors; print how many.",
            [some],
            lambda gang, options: gang.release(arguments.refs(gang, options.refs)),
        ),
        command(
            "ping",
            "Return when every rank has answered.",
            [*COMMON],
            lambda gang, options: gang.ping(**given(options)),
        ),
        command(
            "new_group",
            "Make a group of some ranks.",
            [
                name,
                click.Argument(["ranks"], type=arguments.ints),
                Option("--exist-ok", is_flag=True, help="leave a group of these ranks as it is"),
                *COMMON,
            ],
            lambda gang, options: gang.new_group(
                options.name, options.ranks, **given(options, ("exist_ok", *OF_CALL))
            ),
        ),
        command(
            "destroy_group",
            "Destroy a group.",
            [name],
            lambda gang, options: gang.destroy_group(options.name),
        ),
        command("groups", "List the groups.", [], lambda gang, options: gang.groups()),
        command(
            "kill",
            "Kill the process of one rank, which its agent replaces; print its pid.",
            [_RANK],
            lambda gang, options: gang[options.rank].kill(),
        ),
        command("form", "Form the next generation of every rank.", [], lambda gang, options: gang.form()),
        command(
            "new_queue",
            "Make a queue from one member of a group to others.",
            [
                name,
                Option(
                    "--writer-rank-in-group",
                    type=int,
                    metavar="N",
                    help="the member that writes (default: 0)",
                ),
                Option(
                    "--reader-ranks-in-group",
                    type=arguments.ints,
                    metavar="N,N,...",
                    help="the members that read (default: all others)",
                ),
                *COMMON,
            ],
            lambda gang, options: (
                gang.new_queue(
                    options.name,
                    **given(options, ("writer_rank_in_group", "reader_ranks_in_group", *OF_CALL)),
                )
                and None
            ),
        ),
        command(
            "shut_down_queue",
            "Shut down a queue on one rank.",
            [name, _RANK, *COMMON],
            lambda gang, options: gang[options.rank].shut_down_queue(options.name, **given(options)),
        ),
        command(
            "queues",
            "List the queues of one rank.",
            [_RANK],
            lambda gang, options: gang[options.rank].queues(),
        ),
        command(
            "cancel",
            "Withdraw an operation of one rank; print whether no rank does it.",
            [
                click.Argument(["operation_id"]),
                _RANK,
            ],
            lambda gang, options: gang[options.rank].cancel(options.operation_id),
        ),
    ]
