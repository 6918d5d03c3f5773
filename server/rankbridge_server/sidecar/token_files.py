"""Tokens in files that their owner alone can read."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ..core.tokens import Tokens


class TokenError(ValueError):
    """The tokens cannot be had; says why."""


def private_directory() -> Path:
    """A directory of this user's, which nobody else can write to. Raises TokenError."""
    path = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"rankbridge-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise TokenError(f"{path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise TokenError(f"{path} is not a directory that is yours alone")
    return path


def read(path: Path) -> Tokens:
    """Tokens that were written by `rankbridge tokens`. Raises TokenError, also when others can read them."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise TokenError(f"{path} can be read by others: chmod 600 {path}")
            return Tokens.of_json(file.read())
    except (OSError, ValueError) as error:
        raise TokenError(f"{path}: {error}") from error


def write_new(path: Path, text: str) -> None:
    """Writes a file that is not there yet, for the owner alone. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
