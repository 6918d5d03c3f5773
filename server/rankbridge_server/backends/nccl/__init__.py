"""NCCL, by way of torch's raw ProcessGroupNCCL. Importing it touches no device: ranks are forked afterwards."""

from .backend import NcclBackend
from .beside_job import engine_beside_job
from .installed import missing

__all__ = ["NcclBackend", "engine_beside_job", "missing"]
