"""Writes docs/scenario.schema.json and docs/scenarios.md: the words of scenarios.

scripts/scenarios.py writes them; with --check it fails if what is committed differs.
"""

from __future__ import annotations

import json
import sys

from described import ROOT
from rankbridge.harness.schema import page, schema


def main() -> int:
    """Writes or checks; returns the exit status."""
    made = {
        ROOT / "docs" / "scenario.schema.json": json.dumps(schema(), indent=1) + "\n",
        ROOT / "docs" / "scenarios.md": "\n".join([*page(), ""]),
    }
    if "--check" not in sys.argv:
        for path, text in made.items():
            path.write_text(text)
        return 0
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what scripts/scenarios.py writes")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
