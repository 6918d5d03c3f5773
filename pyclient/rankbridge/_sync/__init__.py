# Written by scripts/unasync.py from _async/__init__.py: change that file, not this one.
"""The asyncio client. The blocking one, `_sync`, is written from it by ``scripts/unasync.py``."""
