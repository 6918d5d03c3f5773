"""One member of a group whose engine is a program."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import torch

from ...core.coordinator import ReduceOp
from ..bytes_coordinator import BytesCoordinator
from ..errors import data_failed
from ..pieces import as_bytes, copied, side_by_side, with_size
from ..reductions import on_bytes
from .process import Program, ProgramError

ENGINE: Final = "The program"


class ProgramCoordinator(BytesCoordinator):
    """Implements `core.coordinator.Coordinator`.

    `program`: of collectives. `messages`: a second process, as sends and receives may come beside a collective.
    """

    def __init__(self, program: Program, messages: Program | None, rank_in_group: int, size: int) -> None:
        super().__init__(rank_in_group, size)
        self._program = program
        self._messages = messages

    def barrier(self, timeout: float) -> None:
        """The program's."""
        self._call("barrier", timeout)

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """The program's."""
        result = copied(tensor)
        receives = self._rank_in_group == dst_rank_in_group
        if result.numel():
            into = result if receives else result.flatten()[:0]
            self._reducing("reduce", result, op, timeout, into, dst_rank_in_group=dst_rank_in_group)
        return result if receives else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """The program's."""
        result = copied(tensor)
        if result.numel():
            self._reducing("all_reduce", result, op, timeout, result)
        return result

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """The program's, of parts side by side."""
        given = cast(torch.Tensor, tensor)
        shape = with_size(given.shape, dim, sizes[self._rank_in_group])
        result = torch.empty(shape, dtype=given.dtype)
        if given.numel():
            parts = side_by_side(given, dim, sizes).view(given.dtype)
            one = given.nbytes // given.shape[dim]
            self._reducing("reduce_scatter", parts, op, timeout, result, sizes=[it * one for it in sizes])
        return result

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """The second program's."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            data = _bytes_of(as_bytes(given))
            self._message("send", timeout, dst_rank_in_group=dst_rank_in_group, tag=tag, base64=data)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """The second program's."""
        into = cast(torch.Tensor, tensor)
        if into.numel():
            words = {"src_rank_in_group": src_rank_in_group, "tag": tag, "size": into.nbytes}
            _fill(as_bytes(into), "recv", self._message("recv", timeout, **words))

    def close(self) -> None:
        """Ends the programs."""
        self._program.close()
        if self._messages is not None:
            self._messages.close()

    def _broadcast(self, data: torch.Tensor, src_rank_in_group: int, timeout: float) -> None:
        given = _bytes_of(data if self._rank_in_group == src_rank_in_group else data[:0])
        self._call(
            "broadcast", timeout, data, src_rank_in_group=src_rank_in_group, size=data.nbytes, base64=given
        )

    def _scatter(
        self,
        parts: torch.Tensor,
        part: torch.Tensor,
        counts: Sequence[int],
        src_rank_in_group: int,
        timeout: float,
    ) -> None:
        words: dict[str, Any] = {"src_rank_in_group": src_rank_in_group, "sizes": list(counts)}
        self._call("scatter", timeout, part, **words, base64=_bytes_of(parts))

    def _gather(
        self,
        part: torch.Tensor,
        parts: torch.Tensor,
        counts: Sequence[int],
        dst_rank_in_group: int,
        timeout: float,
    ) -> None:
        words: dict[str, Any] = {"dst_rank_in_group": dst_rank_in_group, "sizes": list(counts)}
        self._call("gather", timeout, parts, **words, base64=_bytes_of(part))

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        self._call("all_gather", timeout, parts, sizes=list(counts), base64=_bytes_of(part))

    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        words: dict[str, Any] = {"input_sizes": list(sent), "output_sizes": list(received)}
        self._call("all_to_all", timeout, result, **words, base64=_bytes_of(given))

    def _reducing(
        self, name: str, given: torch.Tensor, op: ReduceOp, timeout: float, into: torch.Tensor, **words: Any
    ) -> None:
        words |= {"op": str(on_bytes(op, given.dtype)), "dtype": str(given.dtype).removeprefix("torch.")}
        self._call(name, timeout, as_bytes(into), **words, base64=_bytes_of(as_bytes(given)))

    def _call(self, name: str, timeout: float, into: torch.Tensor | None = None, **words: Any) -> None:
        answer = _asked(self._program, name, timeout, words)
        if into is not None:
            _fill(into, name, answer)

    def _message(self, name: str, timeout: float, **words: Any) -> Mapping[str, Any]:
        if self._messages is None:
            raise data_failed(ENGINE, f"it has no {name}")
        return _asked(self._messages, name, timeout, words)


def _asked(program: Program, name: str, timeout: float, words: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return program.ask("call", timeout, call=name, **words)
    except ProgramError as error:
        raise data_failed(ENGINE, str(error)) from error


def _bytes_of(data: torch.Tensor) -> bytes:
    return bytes(data.numpy().tobytes())


def _fill(into: torch.Tensor, name: str, answer: Mapping[str, Any]) -> None:
    """Copies what a program has answered. Raises BACKEND_FAILED for another number of bytes."""
    try:
        data = base64.b64decode(answer.get("base64") or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise data_failed(ENGINE, f"{name} answered no base64: {error}") from error
    if len(data) != into.nbytes:
        raise data_failed(ENGINE, f"{name} answered {len(data)} bytes, expected {into.nbytes}")
    if data:
        into.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8).view(into.shape))
