"""Names and conventions of other systems."""
