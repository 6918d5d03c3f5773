"""Writes a CycloneDX bill of materials of .venv: each package, its licence, what it needs, and its files' hashes.

Usage: sbom.py [FILE]   FILE is rankbridge.cdx.json by default; `scripts/tools` has cyclonedx-py

A component of the scope `required` is in an image of the ranks; `excluded` are the backend
mpi, tests, linters, and pip itself.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from lock import ROOT, read_lock

_COMMAND = ["cyclonedx-py", "environment", "--pyproject", "pyproject.toml", "--output-reproducible"]
_COMMAND += ["--output-format", "JSON", "--spec-version", "1.6", ".venv/bin/python"]


def bill() -> dict[str, Any]:
    """The bill of materials of .venv."""
    made = subprocess.run(_COMMAND, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    document: dict[str, Any] = json.loads(made.stdout)
    required, excluded = _hashes("constraints.txt", _torch(document)), _hashes("constraints-dev.txt")
    for component in document["components"]:
        pin = f"{canonicalize_name(component['name'])}=={component['version'].partition('+')[0]}"
        component["scope"] = "required" if pin in required else "excluded"
        if hashes := required.get(pin, excluded.get(pin)):
            component.setdefault("externalReferences", []).append(
                {
                    "type": "distribution",
                    "url": component["purl"],
                    "comment": "the files that may be installed as this",
                    "hashes": [{"alg": "SHA-256", "content": content} for content in sorted(hashes)],
                }
            )
    return document


def _torch(document: dict[str, Any]) -> str:
    (torch,) = (it["version"] for it in document["components"] if it["name"] == "torch")
    return "torch-cpu.txt" if torch.endswith("+cpu") else "torch-cuda.txt"


def _hashes(*locks: str) -> dict[str, set[str]]:
    found = [read_lock(ROOT / "locks" / name) for name in locks]
    return {pin.partition(";")[0]: hashes for lock in found for pin, hashes in lock.items()}


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "rankbridge.cdx.json")
    text = json.dumps(bill(), indent=2) + "\n"
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"error: the bill of materials does not follow CycloneDX 1.6: {fault.data}")
    file.write_text(text)
    print(f"sbom: {file} has {len(json.loads(text)['components'])} packages")
