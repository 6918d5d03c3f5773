"""torchgfn's averages over a gang, blocking."""

from rankbridge._sync.compat.torchgfn import average_gradients, average_models

__all__ = ["average_gradients", "average_models"]
