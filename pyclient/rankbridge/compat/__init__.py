"""Names of other systems, over a gang: a module for each. `aio` has the same for asyncio."""
