"""Small wheels, and indexes of them in the file system."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, content: str = "", needs: Sequence[str] = ()) -> Path:
    """Makes a wheel of one module, which has its name and that content."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": content,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {need}\n" for need in needs),
    }
    members[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*members, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in members.items():
            wheel.writestr(zipfile.ZipInfo(member), text)
    return path


def digest(path: Path) -> str:
    """The SHA-256 of a file, as locks have it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_index(folder: Path, wheels: Sequence[Path]) -> str:
    """Makes an index that lists these wheels with their hashes; gives its address."""
    for wheel in wheels:
        page = folder / wheel.name.partition("-")[0] / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as file:
            file.write(f'<a href="{wheel.as_uri()}#sha256={digest(wheel)}">{wheel.name}</a>\n')
    return folder.as_uri()
