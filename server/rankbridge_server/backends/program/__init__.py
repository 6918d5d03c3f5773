"""An engine that is a program: one process for each member of a group, which answers lines of JSON."""

from .backend import ProgramBackend

__all__ = ["ProgramBackend"]
