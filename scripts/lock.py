"""Writes locks/: the hashes of every published file of what is pinned. pip installs no file with another hash.

Usage: lock.py           asks the package index, by uv (`scripts/tools` has it), and writes locks/ anew
       lock.py --check   fails unless locks/ has hashes for exactly what is pinned; needs no network
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_UV = ["uv", "--no-config", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
_UV += ["--generate-hashes", "--no-header", "--no-annotate"]
_HEADER = "# Written by `make lock` from {}.\n"
_ENTRY = re.compile(r"([^\s#]+==[^\\\n]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")

Lock = dict[str, set[str]]
"""Hashes of the files of each pin, such as `torch==2.13.0`."""


class LockError(Exception):
    """What is wrong with a lock, and what to do."""


def read_lock(path: Path) -> Lock:
    """The lock of a file. Raises LockError if the file has anything but pins with hashes below one line of comment."""
    text = path.read_text()
    entries = _ENTRY.findall(text)
    body = text.partition("\n")[2] if text.startswith("#") else text
    if body != "".join(f"{pin}{hashes}\n" for pin, hashes in entries):
        raise LockError(f"{path.name} has more than pins with hashes: run `make lock`")
    return {_normal(pin): set(re.findall(r"[0-9a-f]{64}", hashes)) for pin, hashes in entries}


def read_pins(path: Path) -> list[str]:
    """The pins of a file of constraints."""
    return [_normal(line) for line in path.read_text().splitlines() if line[:1] != "#"]


def check(root: Path) -> None:
    """Raises LockError unless the locks have hashes for exactly what the constraints pin."""
    for constraints in _constraints(root):
        lock, pins = read_lock(root / "locks" / constraints.name), read_pins(constraints)
        if wrong := lock.keys() ^ (set(pins) - {_torch(root)}):
            raise LockError(
                f"{constraints.name} and locks/{constraints.name} differ in {sorted(wrong)}: run `make lock`"
            )
    if list(read_lock(root / "locks" / "torch-cpu.txt")) != [_torch(root)]:
        raise LockError(f"locks/torch-cpu.txt has not the hashes of {_torch(root)} alone: write them there")
    if _torch(root) not in read_lock(root / "locks" / "torch-cuda.txt"):
        raise LockError(f"locks/torch-cuda.txt is not of {_torch(root)}: run `make lock`")


def write(root: Path) -> None:
    """Writes all locks anew but torch-cpu.txt, whose files are on another index."""
    torch = _torch(root)
    for constraints in _constraints(root):
        lock = _published("--no-deps", str(constraints))
        lock.pop(torch, None)
        _write_lock(root / "locks" / constraints.name, constraints.name, lock)
    # torch wants ranges of some CUDA packages. What is locked already stays, where it fits.
    cuda = root / "locks" / "torch-cuda.txt"
    locked = read_lock(cuda) if cuda.exists() else {}
    lock = _published("--constraints", str(root / "constraints.txt"), "-", text=torch, locked=list(locked))
    others = read_lock(root / "locks" / "constraints.txt")
    _write_lock(cuda, torch, {pin: hashes for pin, hashes in lock.items() if pin not in others})


def _published(*arguments: str, text: str = "", locked: Sequence[str] = ()) -> Lock:
    with tempfile.NamedTemporaryFile("w") as file:
        # uv keeps what is in its output file: the versions, without the hashes, which are asked for again.
        file.write("".join(f"{pin}\n" for pin in locked))
        file.flush()
        command = [*_UV, "--output-file", file.name, *arguments]
        subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
        return read_lock(Path(file.name))


def _write_lock(path: Path, source: str, lock: Lock) -> None:
    entries = [
        " \\\n".join([pin, *(f"    --hash=sha256:{it}" for it in sorted(hashes))]) + "\n"
        for pin, hashes in sorted(lock.items())
    ]
    path.write_text(_HEADER.format(source) + "".join(entries))


def _constraints(root: Path) -> list[Path]:
    return sorted(root.glob("constraints*.txt"))


def _torch(root: Path) -> str:
    return next(pin for pin in read_pins(root / "constraints.txt") if pin.startswith("torch=="))


def _normal(pin: str) -> str:
    requirement = Requirement(pin)
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--check"]:
            check(ROOT)
        else:
            write(ROOT)
    except LockError as error:
        sys.exit(f"error: {error}")
