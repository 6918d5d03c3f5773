"""Every operation: what it checks, what its members agree on, what it runs, what it gives."""
