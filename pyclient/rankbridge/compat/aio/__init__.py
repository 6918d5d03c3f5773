"""Names of other systems, over a gang, for asyncio: a module for each."""
