"""MPI, by way of mpi4py."""

from .backend import MpiBackend
from .world import MpiWorld

__all__ = ["MpiBackend", "MpiWorld"]
