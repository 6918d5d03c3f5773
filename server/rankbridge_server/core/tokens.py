"""Who may do what, and the tokens by which callers show who they are."""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from enum import IntEnum


class Role(IntEnum):
    """What a caller may do; each may do what those before it may. As `Role` in options.proto."""

    ANYONE = 0
    OBSERVE = 1
    DRIVE = 2
    OWN = 3
    PEER = 4


@dataclass(frozen=True, slots=True)
class Tokens:
    """What callers show: 256 random bits for each role. `peer` is what the ranks of a gang show each other."""

    observe: str
    drive: str
    own: str
    peer: str

    @classmethod
    def new(cls) -> Tokens:
        """Tokens that nobody else has."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(4)))

    @classmethod
    def of_json(cls, text: str) -> Tokens:
        """What `to_json` wrote. Raises ValueError."""
        try:
            tokens = cls(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "these are no tokens: a JSON object with observe, drive, own and peer"
            ) from error
        if min(len(token) for token in asdict(tokens).values()) < 32:
            raise ValueError("a token has 32 characters or more")
        return tokens

    def to_json(self) -> str:
        """For a file that the owner alone can read."""
        return json.dumps(asdict(self))

    def for_controllers(self) -> dict[str, str]:
        """Those that go beside the endpoints: all but the ranks' own."""
        return {role: token for role, token in asdict(self).items() if role != "peer"}

    def role_of(self, shown: str) -> Role:
        """The role of whoever shows this. Takes as long for every text of one length."""
        found = Role.ANYONE
        for role in (Role.OBSERVE, Role.DRIVE, Role.OWN, Role.PEER):
            token: str = getattr(self, role.name.lower())
            if hmac.compare_digest(token.encode(), shown.encode()):
                found = role
        return found

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
