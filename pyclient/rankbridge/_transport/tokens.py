"""The token by which a client shows the ranks over TCP what it may do."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankbridge._transport.targets import Target, content_of
from rankbridge.errors import InvalidArgumentError

__all__ = ["VARIABLE", "check_near", "find_token", "showing"]

VARIABLE = "RANKBRIDGE_TOKEN_FILE"
_INSECURE = "RANKBRIDGE_INSECURE_TOKEN"
_ROLES = ("own", "drive", "observe")


def find_token(target: Target, given: str | None) -> str | None:
    """Finds the token for a gang: the one given, else the endpoints file's, else that of the file in the environment.

    Raises:
        InvalidArgumentError: There are tokens, and none is of a known role.
        OSError: The file that the environment names cannot be read.
    """
    if given is not None:
        return given
    if isinstance(target, str | os.PathLike | Mapping) and (tokens := content_of(target).get("tokens")):
        return _highest(tokens)
    if path := os.environ.get(VARIABLE):
        text = Path(path).read_text(encoding="utf-8").strip()
        return _highest(json.loads(text)) if text.startswith("{") else text
    return None


def check_near(targets: Sequence[str]) -> None:
    """Checks that nobody beyond this host hears a token that these are shown without TLS.

    Raises:
        InvalidArgumentError: One is at another host.
    """
    if os.environ.get(_INSECURE) == "1":
        return
    for target in targets:
        if not target.startswith("unix") and not _is_loopback(_host(target)):
            raise InvalidArgumentError(
                f"the token would go to {target} in plain text: use tls, or insecure_token=True (or {_INSECURE}=1) if "
                "you trust everybody on that network"
            )


def _host(target: str) -> str:
    # "host:port", "dns:///host:port", "ipv4:1.2.3.4:port", "ipv6:[::1]:port", "[::1]:port".
    address = target.rpartition("/")[2].removeprefix("ipv4:").removeprefix("ipv6:").removeprefix("dns:")
    return address.rpartition(":")[0].strip("[]") or address


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        # Nobody is there to hear it.
        return True
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def showing(callable_: Any, target: str, token: str | None) -> Any:
    """Makes a method of a channel show a token; over a unix socket there is no need."""
    return callable_ if token is None or target.startswith("unix:") else _Showing(callable_, token)


class _Showing:
    def __init__(self, callable_: Callable[..., Any], token: str) -> None:
        self._callable: Any = callable_
        self._metadata = (("authorization", f"Bearer {token}"),)

    def __call__(self, request: Any, **options: Any) -> Any:
        return self._callable(request, metadata=self._metadata, **options)

    def future(self, request: Any, **options: Any) -> Any:
        return self._callable.future(request, metadata=self._metadata, **options)


def _highest(tokens: Any) -> str:
    if isinstance(tokens, Mapping):
        for role in _ROLES:
            if isinstance(token := tokens.get(role), str):
                return token
    raise InvalidArgumentError(
        "these are no tokens", expected=f"one of {', '.join(_ROLES)}", got=type(tokens).__name__
    )
