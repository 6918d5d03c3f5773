"""Control links between the sidecars of one generation: over sockets, or within one process."""
