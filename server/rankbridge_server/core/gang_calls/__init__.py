"""Gang calls: one call to one rank drives every member of a group."""
