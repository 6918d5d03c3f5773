"""Tests that need a CUDA device. Those for which there are not enough are not collected.

One is enough for all of them with NCCL 2.30 or newer, where ranks share it: `NCCL_MULTI_RANK_GPU_ENABLE=1
CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER pytest tests/gpu`. Of members within one process, one cannot
load a kernel while another's runs, so that all are loaded at first. Not with xdist: some thirty ranks at a time filled
80 GB, and all take turns on the device.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.devices import MEMBERS

# Ranks of these tests are on one host; nothing of them goes elsewhere.
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")

_RANKS = {
    "test_nccl_pairs.py": 2,
    "test_nccl_contract.py": 4,
    "test_nccl_guard.py": 4,
    "test_nccl_doctor.py": 4,
}
collect_ignore = [
    it.name for it in Path(__file__).parent.glob("test_*.py") if _RANKS.get(it.name, 1) > MEMBERS
]
