"""What importing the Python client brings into a fresh interpreter."""

import subprocess
import sys

import pytest

PROGRAM = """
import pkgutil, sys
import rankbridge
for module in pkgutil.walk_packages(rankbridge.__path__, "rankbridge."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """Top-level names of all modules that importing every module of the client imports."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_importing_the_client_imports_its_dependencies(imported: set[str]) -> None:
    assert {"rankbridge", "grpc", "google", "numpy"} <= imported


@pytest.mark.parametrize("name", ["torch", "rankbridge_server"])
def test_importing_the_client_never_imports(imported: set[str], name: str) -> None:
    assert name not in imported
