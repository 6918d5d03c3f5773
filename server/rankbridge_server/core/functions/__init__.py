"""The user's own functions, called as operations."""
