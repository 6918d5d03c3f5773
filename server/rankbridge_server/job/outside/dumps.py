"""Flight-recorder dumps on disk, as torch writes them at a timeout of NCCL: pickles, of which nothing is run."""

from __future__ import annotations

import io
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...doctor import flight_recorder
from ...doctor.evidence import Call, Evidence, Group, RankEvidence
from ...doctor.flight_recorder import BadTrace
from ...doctor.focus import focus
from .processes import NoJob

MOST_BYTES = 256 << 20
"""Of a dump: a full record with all stacks has less than a tenth of that."""
_RANK = re.compile(r"(\d+)$")


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, tuples, texts, numbers. Whatever names code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuses."""
        raise BadTrace(
            f"it names {module}.{name}: a dump has plain values alone, so that this is none, or hostile"
        )

    def persistent_load(self, pid: Any) -> Any:
        """Refuses."""
        raise BadTrace("it refers to something outside: a dump has plain values alone")


def load(data: bytes) -> dict[str, Any]:
    """The content of a dump. Raises BadTrace if it is anything else; runs nothing that it names."""
    if len(data) > MOST_BYTES:
        raise BadTrace(f"it has {len(data):,} bytes, more than {MOST_BYTES:,}")
    try:
        content = _Plain(io.BytesIO(data)).load()
    except BadTrace:
        raise
    except Exception as error:
        raise BadTrace(f"it is cut off, or no pickle: {type(error).__name__}: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("entries"), list):
        raise BadTrace("it has no entries: it is no dump of the flight recorder")
    return content


def found(directory: Path) -> dict[int, Path]:
    """Dumps of a folder by rank: files whose name ends in a number, and that begin as a pickle does."""
    dumps = {}
    for path in sorted(it for it in directory.iterdir() if it.is_file()):
        number = _RANK.search(path.name)
        if number is not None:
            with path.open("rb") as file:
                if file.read(1) == pickle.PROTO:
                    dumps[int(number[1])] = path
    return dumps


def collect(directory: Path) -> Evidence:
    """Evidence of the dumps of a folder. Raises NoJob if there are none, or if one cannot be read."""
    dumps = found(directory)
    if not dumps:
        raise NoJob(
            f"{directory} has neither records of `rankbridge watch` nor dumps of torch's flight recorder"
        )
    contents, calls, sizes = {}, {}, [max(dumps) + 1]
    for rank, path in dumps.items():
        try:
            contents[rank] = load(path.read_bytes())
            calls[rank] = flight_recorder.calls(contents[rank])
            sizes += [max(_members(it), default=-1) + 1 for it in _config(contents[rank]).values()]
        except (BadTrace, OSError) as error:
            raise NoJob(f"{path}: {error}") from None
    ranks = tuple(
        RankEvidence(
            rank=it, groups=_groups(content, calls[it], max(sizes)), calls=calls[it], source="flight recorder"
        )
        for it, content in contents.items()
    )
    at = max(it.stat().st_mtime for it in dumps.values())
    return focus(Evidence(at=at, interval_s=0.0, world_size=max(sizes), ranks=ranks))


def _groups(content: Mapping[str, Any], calls: tuple[Call, ...], size: int) -> tuple[Group, ...]:
    known = {}
    for name, it in _config(content).items():
        known[name] = Group(name=name, ranks=_members(it), description=str(it.get("desc", "")))
    # Gloo's record describes no group; the default one has all ranks.
    described = {str(it["process_group"][0]): str(it["process_group"][1]) for it in content["entries"]}
    for name in {it.group for it in calls} - known.keys():
        if described.get(name) == "default_pg":
            known[name] = Group(name=name, ranks=tuple(range(size)), description="default_pg")
    return tuple(known.values())


def _config(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    config = content.get("pg_config", {})
    if not isinstance(config, dict) or not all(isinstance(it, dict) for it in config.values()):
        raise BadTrace("its groups are not as torch describes them")
    return {str(it.get("name", name)): it for name, it in config.items() if it.get("name", name)}


def _members(group: Mapping[str, Any]) -> tuple[int, ...]:
    try:
        ranks = json.loads(str(group.get("ranks", "[]")))
    except (ValueError, RecursionError):
        ranks = None
    if not isinstance(ranks, list) or not all(type(it) is int for it in ranks):
        raise BadTrace(f"a group's ranks are {str(group.get('ranks'))[:80]!r}")
    return tuple(ranks)
