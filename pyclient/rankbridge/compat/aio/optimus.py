"""optimus-dl's ``Collective`` over a gang, for asyncio."""

from rankbridge._async.compat.optimus import all_gather_objects, all_gather_to_list, broadcast_objects

__all__ = ["all_gather_objects", "all_gather_to_list", "broadcast_objects"]
