"""torchgfn's averages over a gang, for asyncio."""

from rankbridge._async.compat.torchgfn import average_gradients, average_models

__all__ = ["average_gradients", "average_models"]
