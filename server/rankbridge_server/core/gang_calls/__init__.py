"""One call to one rank that drives every member of a group."""
