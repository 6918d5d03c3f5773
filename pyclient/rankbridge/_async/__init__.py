"""The asyncio client: the source of the blocking one."""
