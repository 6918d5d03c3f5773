"""Gloo, by way of torch's raw ProcessGroupGloo."""

from .backend import GlooBackend

__all__ = ["GlooBackend"]
