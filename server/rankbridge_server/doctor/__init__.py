"""Verdicts on a job's collectives, from evidence that somebody else has collected. Reads nothing, asks nobody."""
