"""mpi4py, imported so that nothing of MPI begins or ends by itself: an agent imports it before it forks its ranks."""

import mpi4py

mpi4py.rc.initialize = False
mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402

__all__ = ["MPI"]
