"""Records and stacks in the formats that other programs read."""
