"""CUDA devices of this machine, and how many ranks are tested on them.

Usually a device has one rank. Where NCCL_MULTI_RANK_GPU_ENABLE is 1, which NCCL knows from 2.30 on, ranks share them.
"""

from __future__ import annotations

import os

import torch

SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"
DEVICES = torch.cuda.device_count() if torch.cuda.is_available() else 0
MEMBERS = max(DEVICES, 4) if DEVICES and os.environ.get(SHARING) == "1" else DEVICES
"""Ranks of the largest gang."""
IN_PROCESS = min(MEMBERS, max(DEVICES, 2))
"""Members of the largest group within the tests' process. Of three on one device, each waited for the others."""


def device_of(rank: int) -> torch.device:
    """Where the tensors of a rank are."""
    return torch.device("cuda", rank % DEVICES)
