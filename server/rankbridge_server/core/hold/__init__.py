"""Holding calls before they are entered, and letting them go."""
