# Written by scripts/unasync.py from _async/compat/olmo.py: change that file, not this one.
"""OLMo-core's utilities over a gang, blocking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from rankbridge._plan import operations as ops, rounds
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.rounds import Round
from rankbridge._sync.gang import Gang
from rankbridge._sync.rank import Rank
from rankbridge.errors import GangError, InvalidArgumentError


def is_distributed(gang: Gang) -> bool:
    """Asks whether collectives can be called.

    Returns:
        True: a generation is formed, on every rank. False: none is, it is over, or a rank does not answer.
    """
    outcomes = gang._channels.outcomes(gang._on(gang._all(), ops.status))
    reported = [outcome.value for outcome in outcomes if outcome.value is not None]
    return (
        len(reported) == len(gang)
        and all(status.generation_state == "formed" for status in reported)
        and len({status.generation for status in reported}) == 1
    )


def synchronize_value(
    gang: Gang, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> list[Any]:
    """Gives every member the source's value: see ``Gang.broadcast_object``.

    Unlike OLMo-core's, a float does not become a float32 on the way.

    Args:
        gang: The gang.
        value: The source's: a number, a tensor by value, or anything else that can be a value.
        src_rank_in_group: Rank in the group of the source.
        **options: ``CallOptions``.
    """
    return gang.broadcast_object(value, src_rank_in_group=src_rank_in_group, **options)


def synchronize_flag(
    gang: Gang, flag: bool, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> list[bool]:
    """Gives every member the source's flag.

    Args:
        gang: The gang.
        flag: The source's.
        src_rank_in_group: Rank in the group of the source; OLMo-core counts in the gang.
        **options: ``CallOptions``.

    Raises:
        InvalidArgumentError: It is no bool. No rank was asked.
    """
    if not isinstance(flag, bool):
        raise InvalidArgumentError(
            "a flag is a bool", operation="synchronize_flag", expected="True or False", got=repr(flag)
        )
    return gang.broadcast_object(flag, src_rank_in_group=src_rank_in_group, **options)


def do_n_at_a_time(
    gang: Gang, n: int | None = None, *, group: str | Group = "world", timeout: float | None = None
) -> Iterator[Round[Rank]]:
    """Lets the members of a group take turns, a few at a time.

    Gives one round after the other. Each ends with a barrier of the group when the next one is asked for::

        for turns in do_n_at_a_time(gang, 2):
            for turn in turns:
                with turn as rank:
                    rank.put(...)

    What fails inside ``with turn`` leaves the other turns as they are, and is raised after the last round. An
    exception anywhere else ends the rounds; no rank waits for any other then.

    Args:
        gang: The gang.
        n: How many ranks have their turn at once, at most. None: one on each host.
        group: Whose members.
        timeout: Longest time of each barrier, in seconds. None: the gang's default.

    Raises:
        InvalidArgumentError: `n` is less than one, at once. No rank was asked.
        GangError: At the first round: a rank could not be asked. After a round: the barrier failed.
            After the last: some turns failed, with errors of this package.
        Exception: After the last round: what failed in a turn, if it was anything else.
    """
    if n is not None and n < 1:
        raise InvalidArgumentError(
            "nobody would ever have a turn", operation="do_n_at_a_time", expected="n of 1 or more", got=str(n)
        )
    return _rounds(gang, n, group, timeout)


def _rounds(gang: Gang, n: int | None, group: str | Group, timeout: float | None) -> Iterator[Round[Rank]]:
    planned = gang._carried_out(rounds.taking_turns(gang, n, group, gang.__getitem__))
    for each in planned:
        yield each
        try:
            gang.barrier(group=group, timeout=timeout)
        except GangError as error:
            rounds.note(error, planned)
            raise
    if (failure := rounds.failure(planned)) is not None:
        raise failure
