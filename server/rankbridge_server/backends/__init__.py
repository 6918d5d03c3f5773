"""Distributed engines behind `core.coordinator`. torch is imported here and nowhere else."""
