"""Every operation as it comes over the wire."""
