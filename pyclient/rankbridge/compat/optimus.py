"""optimus-dl's ``Collective`` over a gang, blocking."""

from rankbridge._sync.compat.optimus import all_gather_objects, all_gather_to_list, broadcast_objects

__all__ = ["all_gather_objects", "all_gather_to_list", "broadcast_objects"]
