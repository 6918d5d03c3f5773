"""Lists what of CUDA a pip report's packages require; exits with 1 if that is anything.

Usage: cuda_packages.py REPORT.json, where the report is one of `pip install --dry-run --report`.
"""

import json
import re
import sys
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

_CUDA = re.compile(r"^(nvidia|cuda|triton|pytorch-triton)\b")


def cuda_requirements(report: dict[str, list[dict[str, dict[str, list[str]]]]]) -> list[str]:
    """Names of the CUDA packages required by the report's packages on this machine, in its order."""
    stated = (text for item in report["install"] for text in item["metadata"].get("requires_dist", []))
    required = (Requirement(text) for text in stated)
    return [
        need.name
        for need in required
        if _CUDA.match(need.name) and (need.marker is None or need.marker.evaluate({"extra": ""}))
    ]


if __name__ == "__main__":
    names = cuda_requirements(json.loads(Path(sys.argv[1]).read_text()))
    print(*names, sep="\n", end="\n" if names else "", file=sys.stderr)
    sys.exit(1 if names else 0)
