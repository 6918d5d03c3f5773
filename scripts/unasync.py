"""Writes the blocking Python client, `_sync`, from the asyncio one, `_async`.

python scripts/unasync.py           writes every file anew, and removes those that have no source
python scripts/unasync.py --check   changes nothing; fails if a file is not what its source gives
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "pyclient" / "rankbridge"
SOURCE, BLOCKING = CLIENT / "_async", CLIENT / "_sync"
NOTICE = "# Written by scripts/unasync.py from {source}: change that file, not this one.\n"

REPLACEMENTS = [
    (r"\ban ``async with``", "a ``with``"),
    (r"\ban ``Async", "a ``"),
    (r"async (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Iterable|Generator|ContextManager|ExitStack)\b", r"\1"),
    (r"\bAbstractAsync", "Abstract"),
    (r"\b_?enter_async_context\b", "enter_context"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\baconnect\b", "connect"),
    (r"\brankbridge\._async\b", "rankbridge._sync"),
    (r"\brankbridge\._transport\.aio\b", "rankbridge._transport.threads"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\bthe asyncio client\b", "the blocking client"),
    (r"\bare awaited\b", "block"),
    (r", for asyncio\.", ", blocking."),
]
"""Patterns and what takes their place, in this order, in every line, docstrings too."""


def blocking(text: str) -> str:
    """Gives the blocking form of asyncio source."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def written(folder: Path) -> dict[Path, str]:
    """Gives every file of the blocking client, formatted, by its path within `_sync`; works in `folder`."""
    for source in sorted(SOURCE.rglob("*.py")):
        within = source.relative_to(SOURCE)
        made = folder / within
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(NOTICE.format(source=f"_async/{within}") + blocking(source.read_text()))
    config = ["--config", str(CLIENT.parent.parent / "pyproject.toml")]
    # Imports change their order with their names, and lines their length.
    subprocess.run(["ruff", "check", "--quiet", "--fix", "--select", "I", *config, folder], check=True)
    subprocess.run(["ruff", "format", "--quiet", *config, folder], check=True)
    return {path.relative_to(folder): path.read_text() for path in sorted(folder.rglob("*.py"))}


def main() -> int:
    """Writes or checks; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a file is not fresh")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder))
    there = {path.relative_to(BLOCKING): path.read_text() for path in BLOCKING.rglob("*.py")}
    stale = sorted(path for path in files.keys() | there.keys() if files.get(path) != there.get(path))
    for path in stale:
        print(f"{'not fresh' if check else 'written'}: _sync/{path}")
        if not check and path in files:
            (BLOCKING / path).parent.mkdir(parents=True, exist_ok=True)
            (BLOCKING / path).write_text(files[path])
        elif not check:
            (BLOCKING / path).unlink()
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
