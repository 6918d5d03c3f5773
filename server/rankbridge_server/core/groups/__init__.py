"""Groups of ranks, and forming the generation that they belong to."""
