"""The addresses that members of a group exchange before they have a communicator."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ..errors import forming_failed
from .channel import Count
from .retired import Counts


@dataclass(frozen=True, slots=True)
class Address:
    """A member: its job, its rank there, and its counts on retired communicators. `nonce` is unique."""

    job: str
    rank: int
    nonce: str
    counts: Counts

    @classmethod
    def new(cls, job: str, rank: int, counts: Counts) -> Address:
        """An address for one attempt at one group."""
        return cls(job, rank, secrets.token_hex(8), counts)

    def encoded(self) -> bytes:
        """Encodes the address for the other members."""
        counts = {key: [it.collectives, it.sent, it.received] for key, it in self.counts.items()}
        return json.dumps([self.job, self.rank, self.nonce, counts]).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Address:
        """Parses an encoded address. Raises BACKEND_FAILED."""
        try:
            job, rank, nonce, counts = json.loads(data)
            return cls(str(job), int(rank), str(nonce), {key: Count(*it) for key, it in counts.items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise forming_failed(
                "MPI",
                "a member's address is not one of MPI: are all ranks on the backend mpi?",
                expected="an address of the backend mpi",
                got=repr(data[:80]),
            ) from error


def key_of(addresses: Sequence[bytes]) -> str:
    """A name for the communicator of the members with these addresses, in group order; never the same twice."""
    digest = blake2b(digest_size=8)
    for address in addresses:
        digest.update(len(address).to_bytes(8, "little") + address)
    return digest.hexdigest()
