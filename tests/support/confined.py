"""Commands confined as the services of docker-compose.yml are, by namespaces of the kernel and no container engine.

The root file system is this machine's. The user stays the same, without any capability.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

_NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount"]
# volume, "ro" or "rw", each tmpfs, "--", command
_CONFINE = """
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/rankbridge
mount --bind "$1" /run/rankbridge
mount -o "remount,bind,$2" /run/rankbridge
shift 2
while [ "$1" != -- ]; do
  mount -t tmpfs -o "${1#*:}" tmpfs "${1%%:*}"
  shift
done
shift
mount -o remount,bind,ro /run
mount -o remount,bind,ro /
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""


@functools.cache
def _can_confine() -> bool:
    try:
        probe = confined({"tmpfs": [], "volumes": ["tokens:/run/rankbridge"]}, Path("/tmp"), "true")
        return subprocess.run(probe, capture_output=True, timeout=60).returncode == 0
    except FileNotFoundError:
        return False


def confined(service: Mapping[str, Any], volume: Path, *command: str | Path) -> list[str | Path]:
    """The command, with only what the service may write: its tmpfs, and the volume if it is not mounted for reading."""
    (mount,) = service["volumes"]
    mode = "ro" if mount == "tokens:/run/rankbridge:ro" else "rw"
    return [*_NAMESPACES, "sh", "-ec", _CONFINE, "sh", volume, mode, *service["tmpfs"], "--", *command]


def needs_namespaces() -> None:
    """Skips the test where this user may make no namespaces."""
    if not _can_confine():
        pytest.skip("this user may make no user and mount namespaces")
