"""Asks a database of vulnerabilities about every pin in locks/.

Usage: audit.py [OPTION...]   options go to pip-audit, which `scripts/tools` has: `--vulnerability-service osv`, for one

Status 0: the database knows all packages, and no vulnerability of them. 1: there are some. 3: the database cannot be
reached, or does not know a package, so that it cannot be said.
"""

import json
import subprocess
import sys

from lock import ROOT

_COMMAND = ["pip-audit", "--disable-pip", "--no-deps", "--format", "json", "--progress-spinner", "off"]
_VULNERABLE, _UNKNOWN = 1, 3


def audit(options: list[str]) -> int:
    """Prints what the database says. Gives the status."""
    packages = []
    for lock in sorted((ROOT / "locks").glob("*.txt")):
        done = subprocess.run([*_COMMAND, *options, "--requirement", lock], capture_output=True, text=True)
        try:
            packages += json.loads(done.stdout)["dependencies"]
        except ValueError:
            reason = done.stderr.strip().rpartition("\n")[2]
            print(f"audit: the database of vulnerabilities gives no answer: {reason}")
            return _UNKNOWN
    found = [(package, it) for package in packages for it in package.get("vulns", [])]
    for package, it in found:
        names = ", ".join([it["id"], *it["aliases"]])
        mended = ", ".join(it["fix_versions"]) or "no version"
        print(f"audit: {package['name']} {package['version']} has {names}; mended in {mended}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        print(
            f"audit: the database of vulnerabilities is not there: it knows none of {len(packages)} packages"
        )
    elif unknown:
        print(f"audit: the database of vulnerabilities does not know {', '.join(unknown)}")
    if not found and not unknown:
        print(f"audit: {len(packages)} packages, no known vulnerability")
    return _VULNERABLE if found else _UNKNOWN if unknown else 0


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1:]))
