"""Lets a thread of another process make a few calls, and leaves the thread as it was."""
