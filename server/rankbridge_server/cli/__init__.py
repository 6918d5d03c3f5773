"""The command line, and the composition root: the only package that sees every layer."""

from .main import main

__all__ = ["main"]
