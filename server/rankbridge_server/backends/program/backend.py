"""Forming groups of programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...core.coordinator import Coordinator, GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from ...core.errors import BridgeError
from ..basics import MESSAGES, lacking
from ..errors import forming_failed
from ..reductions import on_bytes, reduces_on_gloo
from ..torch_tensors import TORCH, TorchTensors
from .coordinator import ENGINE, ProgramCoordinator
from .process import Program, ProgramError

PROTOCOL = 1


class ProgramBackend:
    """Members are processes of `command`. `name`: what it is called. `hostname`: where others reach this rank's.

    Starts one alone to see what it implements. Raises BACKEND_FAILED when that fails. `timeout`: seconds that a program
    may take to open.
    """

    def __init__(self, name: str, command: str, hostname: str, timeout: float) -> None:
        torch.set_num_threads(1)
        self.name = name
        self.tensors = TorchTensors()
        self._command = command
        self._hostname = hostname
        self._timeout = timeout
        program, opened = self._opened(0, 1)
        program.close()
        self._operations = frozenset(map(str, opened.get("operations", ())))
        self._reductions: Mapping[str, Sequence[str]] = opened.get("reductions", {})

    @property
    def lacks(self) -> frozenset[str]:
        """What it has not named when it was opened."""
        return lacking(self._operations)

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether it has named the reduction, which Gloo has as well."""
        its = self._reductions.get(str(on_bytes(op, TORCH[dtype])), ())
        return str(dtype) in its and reduces_on_gloo(op, dtype)

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Starts the programs of a member."""
        size = len(group.ranks)
        opened = [self._opened(rank_in_group, size)]
        try:
            if self._operations >= MESSAGES:
                opened.append(self._opened(rank_in_group, size))
        except BridgeError:
            opened[0][0].close()
            raise
        return _ProgramJoining(
            [it for it, _ in opened], [str(it.get("address", "")) for _, it in opened], rank_in_group, size
        )

    def _opened(self, rank_in_group: int, size: int) -> tuple[Program, Mapping[str, Any]]:
        try:
            program = Program(self._command)
            words = {"protocol": PROTOCOL, "rank": rank_in_group, "size": size, "host": self._hostname}
            return program, program.ask("open", self._timeout, **words)
        except ProgramError as error:
            raise forming_failed(ENGINE, str(error)) from error


class _ProgramJoining:
    """Programs that have an address each."""

    def __init__(
        self, programs: Sequence[Program], addresses: Sequence[str], rank_in_group: int, size: int
    ) -> None:
        self._programs = programs
        self._rank_in_group = rank_in_group
        self._size = size
        self.address = json.dumps(addresses).encode()

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Gives each of them the addresses of its like."""
        try:
            columns = list(zip(*(json.loads(it) for it in addresses), strict=True))
            for program, column in zip(self._programs, columns, strict=True):
                program.ask("connect", timeout, addresses=list(column))
        except ProgramError as error:
            self.abandon()
            raise forming_failed(ENGINE, str(error)) from error
        except (ValueError, TypeError) as error:
            self.abandon()
            raise forming_failed(
                ENGINE, f"these are no addresses of programs: {error}", got=repr(list(addresses))[:200]
            ) from error
        program, *messages = self._programs
        return ProgramCoordinator(program, messages[0] if messages else None, self._rank_in_group, self._size)

    def abandon(self) -> None:
        """Ends the programs."""
        for program in self._programs:
            program.close()
