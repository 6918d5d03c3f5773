"""A backend within one process: the same answers as Gloo, without sockets."""

from .backend import FakeBackend, FakeHub

__all__ = ["FakeBackend", "FakeHub"]
