"""Another user of this host: programs that have given up this user's rights."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_NOBODY = 65534
_BECOME = f"import os; os.setgroups([]); os.setgid({_NOBODY}); os.setuid({_NOBODY})"

needs_another_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def strange_process(imports: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a program as another user. Its imports come first, while it may read them."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import {imports}\n{_BECOME}\n{program}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def stranger(imports: str, program: str, *arguments: str) -> list[str]:
    """Runs a program as another user to its end; gives the words that it prints."""
    with strange_process(imports, program, *arguments) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.split()
