# Written by scripts/unasync.py from _async/compat/__init__.py: change that file, not this one.
"""Names and conventions of other systems."""
