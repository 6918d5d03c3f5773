"""Sending calls with asyncio."""
