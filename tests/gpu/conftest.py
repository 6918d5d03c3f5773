"""Tests that need a CUDA device: where there is none they are not collected, and those of two devices need two."""

from __future__ import annotations

import os

import torch

DEVICES = torch.cuda.device_count() if torch.cuda.is_available() else 0
# Ranks of these tests are on one host; nothing of them goes elsewhere.
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")

collect_ignore_glob = {0: ["test_*.py"], 1: ["test_*_pairs.py"]}.get(DEVICES, [])
