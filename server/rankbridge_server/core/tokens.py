"""Who may do what, and the tokens by which callers show who they are."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    """What a caller may do; each may do what those before it may. As `Role` in options.proto."""

    ANYONE = 0
    OBSERVE = 1
    DRIVE = 2
    OWN = 3
    PEER = 4


def new_token() -> str:
    """A token that nobody else has: 256 random bits."""
    return secrets.token_urlsafe(32)


GUEST_ROLES = {"observe": Role.OBSERVE, "drive": Role.DRIVE}


class Caller(NamedTuple):
    """Who calls. Callers of one name share what they keep on the ranks, those with the role OWN share all."""

    name: str
    role: Role


NOBODY = Caller("", Role.ANYONE)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What callers show: 256 random bits for each role. `peer` is what the ranks of a gang show each other.

    `guests`: by name, the tokens of more callers, each with a role of observe or drive.
    """

    observe: str
    drive: str
    own: str
    peer: str
    guests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def new(cls) -> Tokens:
        """Tokens that nobody else has."""
        return cls(new_token(), new_token(), new_token(), new_token())

    @classmethod
    def of_json(cls, text: str) -> Tokens:
        """What `to_json` wrote. Raises ValueError."""
        try:
            tokens = cls(**json.loads(text))
            callers = tokens._callers()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "these are no tokens: a JSON object with observe, drive, own and peer, and perhaps guests"
            ) from error
        if min(map(len, callers)) < 32:
            raise ValueError("a token has 32 characters or more")
        return tokens

    def to_json(self) -> str:
        """For a file that the owner alone can read."""
        return json.dumps(asdict(self))

    def for_controllers(self) -> dict[str, str]:
        """Those that go beside the endpoints: all but the ranks' own."""
        return {"observe": self.observe, "drive": self.drive, "own": self.own}

    def with_guest(self, name: str, role: Role, token: str) -> Tokens:
        """These tokens, and one of a guest; it replaces the guest's last."""
        return replace(self, guests={**self.guests, name: {"role": role.name.lower(), "token": token}})

    def caller_of(self, shown: str) -> Caller:
        """Who shows this. Takes as long for every text of one length."""
        found = NOBODY
        for token, caller in self._callers().items():
            if hmac.compare_digest(token.encode(), shown.encode()):
                found = caller
        return found

    def _callers(self) -> dict[str, Caller]:
        """Callers by their tokens."""
        roles = (Role.OBSERVE, Role.DRIVE, Role.OWN, Role.PEER)
        callers = {getattr(self, role.name.lower()): Caller(role.name.lower(), role) for role in roles}
        for name, guest in self.guests.items():
            role = GUEST_ROLES[guest["role"]]
            callers[guest["token"]] = Caller(name, role)
        return callers

    def secret_of(self, nonce: bytes) -> bytes:
        """The secret of a generation's links, from what its ranks are given with the commit, which others may read."""
        return hmac.digest(self.peer.encode(), b"links " + nonce, "sha256")

    def seal(self, text: str, context: str) -> str:
        """Proves that a text is of a rank of this gang. `context`: what else it must be about."""
        return f"{self._proof(text, context)} {text}"

    def unseal(self, sealed: str, context: str) -> str:
        """Returns the text that `seal` was given. Raises ValueError for that of another gang, or another context."""
        proof, _, text = sealed.partition(" ")
        if not hmac.compare_digest(proof.encode(), self._proof(text, context).encode()):
            raise ValueError("it does not come from a rank with the same tokens")
        return text

    def _proof(self, text: str, context: str) -> str:
        return hmac.digest(self.peer.encode(), json.dumps([context, text]).encode(), "sha256").hex()
