"""Several collectives as one operation: coalesced, recorded as graphs, or written as programs."""
