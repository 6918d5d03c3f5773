"""Benchmarks: ratios of what rankbridge costs to what it stands on, measured in the same run."""
