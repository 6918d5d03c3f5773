"""Message queues: one member of a group writes, and every reader reads each value, in order."""
