"""Logs: what an operator needs to know of a rank, on standard error, as text or as lines of JSON."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..core.errors import ErrorCode, Failure
from ..core.events import Event, Formed, Kind, Straggler
from ..core.logger import LOGGER
from ..core.printable import lines
from ..core.rate import Rate

MAX_LINES_PER_S = 100
LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Logs:
    """How to log: `form` "text" or "json", and the lowest level."""

    form: str = "text"
    level: str = "warning"


def begin(logs: Logs) -> None:
    """Makes this process log."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if logs.form == "json" else _Text())
    rate = Rate(MAX_LINES_PER_S)

    def limit(record: logging.LogRecord) -> bool:
        left_out = rate.lets_through()
        record.left_out = left_out
        return left_out is not None

    handler.addFilter(limit)
    LOGGER.handlers = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(logs.level.upper())


def log_event(event: Event) -> None:
    """Logs what has happened to a rank's generation."""
    level, text = _told(event.kind, event.detail)
    LOGGER.log(level, text, extra={"rank": event.rank, "event": event.kind.name.lower()})


def _told(kind: Kind, detail: Formed | Failure | Straggler) -> tuple[int, str]:
    if isinstance(detail, Formed):
        groups = ", ".join(f"{it.name} {list(it.ranks)}" for it in detail.groups)
        return logging.INFO, f"a generation of {detail.world_size} ranks is formed, with groups {groups}"
    if isinstance(detail, Straggler):
        missing = ", ".join(str(rank) for rank, _ in detail.missing) or "nobody any more"
        return logging.WARNING, (
            f"{detail.operation} on {detail.group} has waited {detail.waited:.1f} s; missing: {missing}"
        )
    # What was ended on purpose is no reason to worry.
    level = logging.INFO if detail.code is ErrorCode.ABORTED else logging.WARNING
    return level, ("the generation is over: " if kind is Kind.OVER else "") + str(detail)


class _Text(logging.Formatter):
    """A line for people: the time, the rank, the level, the text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a text of several lines goes on below it."""
        rank = getattr(record, "rank", None)
        where = "" if rank is None else f" rank {rank}"
        left_out = getattr(record, "left_out", 0)
        more = f" (and {left_out} more lines before it)" if left_out else ""
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        return f"{time}{where} {record.levelname.lower()}: {lines(record.getMessage())}{more}"


class _Json(logging.Formatter):
    """An object on a line for programs."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        for name in ("rank", "event", "left_out"):
            if (value := getattr(record, name, None)) not in (None, 0) or (name == "rank" and value == 0):
                fields[name] = value
        return json.dumps(fields)
