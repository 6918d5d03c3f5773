"""Sending calls from threads that block."""
