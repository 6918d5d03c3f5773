"""A backend within one process, with the results of Gloo and without sockets."""

from .backend import FakeBackend, FakeHub

__all__ = ["FakeBackend", "FakeHub"]
