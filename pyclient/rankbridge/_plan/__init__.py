"""What needs no socket: calls, the procedures that are made of them, and what they are about."""
