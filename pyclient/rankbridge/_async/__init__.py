"""The asyncio client. The blocking one, `_sync`, is written from it by ``scripts/unasync.py``."""
