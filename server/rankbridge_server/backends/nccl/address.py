"""The addresses that members of a group exchange before they connect."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import forming_failed

# Either says that ranks on one device are meant: NCCL's own word for it, from 2.30 on, and how it was had before.
_SHARING = ("NCCL_MULTI_RANK_GPU_ENABLE", "NCCL_HOSTID")


@dataclass(frozen=True, slots=True)
class Address:
    """A member's device; and, of rank 0 in the group, the ids of the group's communicators."""

    device: str
    ids: tuple[bytes, ...] = ()

    def encoded(self) -> bytes:
        """As it travels."""
        return json.dumps([self.device, [it.hex() for it in self.ids]]).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Address:
        """Parses an encoded address. Raises BACKEND_FAILED."""
        try:
            device, ids = json.loads(data)
            return cls(str(device), tuple(bytes.fromhex(it) for it in ids))
        except (ValueError, TypeError) as error:
            raise forming_failed(
                "NCCL",
                "a member's address is not one of NCCL: are all ranks on the backend nccl?",
                expected="an address of the backend nccl",
                got=repr(data[:80]),
            ) from error


def check(members: Sequence[Address], communicators: int, environ: Mapping[str, str] = os.environ) -> None:
    """Raises BACKEND_FAILED for members that NCCL would refuse, or wait for forever."""
    if len(members[0].ids) != communicators:
        raise forming_failed(
            "NCCL",
            "the address of rank 0 in the group has not the ids of its communicators",
            expected=f"{communicators} ids",
            got=f"{len(members[0].ids)}",
        )
    if any(environ.get(name) for name in _SHARING):
        return
    seen: dict[str, int] = {}
    for rank_in_group, member in enumerate(members):
        if member.device in seen:
            raise forming_failed(
                "NCCL",
                f"the members of rank {seen[member.device]} and {rank_in_group} in the group are on one device, which "
                "NCCL refuses: start no more ranks on a host than it has devices, or, from NCCL 2.30 on, set "
                "NCCL_MULTI_RANK_GPU_ENABLE=1 for all ranks",
                expected="a device for each member",
                got=f"{member.device} twice",
            )
        seen[member.device] = rank_in_group
