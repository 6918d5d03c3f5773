"""Values that stay on a rank, and the sessions that own them."""
