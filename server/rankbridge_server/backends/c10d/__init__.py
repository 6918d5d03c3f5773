"""A backend of torch.distributed that somebody else wrote."""

from .backend import C10dBackend
from .creator import NoCreator, creator_of, registered

__all__ = ["C10dBackend", "NoCreator", "creator_of", "registered"]
