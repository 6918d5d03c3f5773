"""NCCL, by way of torch's raw ProcessGroupNCCL. Importing it touches no device: ranks are forked afterwards."""

from .backend import NcclBackend
from .installed import missing

__all__ = ["NcclBackend", "missing"]
