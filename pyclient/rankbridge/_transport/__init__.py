"""Sending calls: over grpcio, for threads and for asyncio, over unix sockets without it, and by shared memory."""
