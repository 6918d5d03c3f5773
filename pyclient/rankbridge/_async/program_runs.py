"""Running programs, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._async.front import AsyncGangFront, AsyncRankFront
from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.program import Program
from rankbridge._plan.program_steps import Named

__all__ = ["AsyncGangRuns", "AsyncRankRuns"]


class AsyncGangRuns(AsyncGangFront):
    """How a ``AsyncGang`` runs procedures."""

    async def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Runs a program, on all members, as one operation: one call and one admission for all of its steps.

        The ranks go from step to step by themselves. What is kept, and what the program has changed in place, is
        there when all of it is done, or nothing is.

        Args:
            program: The program.
            keep: What is kept of that which its steps give: refs for it are made. All else is freed.
            **options: Of the one call: ``CallOptions``. Until its `timeout` the members must have been admitted, and
                so long the call waits, for all steps together. A program that takes longer goes on: give it the time
                that it needs; or begin it with ``gang.submit("run_program", program, keep=[...])``, and wait for its
                `result` with another timeout.

        Returns:
            For each name in `keep`, in order, what the collective's method gives: of all_reduce a ref of each member,
            in group order.

        Raises:
            InvalidArgumentError: The program is empty or still in a loop, its refs are not one of each member, or
                `keep` has names of another. No rank was asked.
            GangError: A step cannot be done, or differs among the members; the message tells which, and nothing is
                done. ``DeadlineExceededError``: it has not ended in time; if `indefinite`, it goes on, and
                ``gang.find`` has its outcome by its `operation_id`.
        """
        return await self._carried_out(procedures.running(self, program, {**options, "keep": keep}))


class AsyncRankRuns(AsyncRankFront):
    """How a ``AsyncRank`` takes part in running procedures."""

    async def run(
        self, program: Program, *, keep: Sequence[Named] = (), **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Runs this member's part of a program; the other members run theirs. See ``AsyncGang.run``.

        Args:
            program: The program, whose steps take refs of this rank. All members' steps are the same ones.
            keep: What is kept.
            **options: Of the one call.

        Returns:
            For each name in `keep`, in order, what the collective gives here: a ref, a list of refs, or None.
        """
        return await self._run(ops.run_program(self._scope, program, keep=keep, **options))
