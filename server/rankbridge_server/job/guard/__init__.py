"""Guard: a job's own collectives are admitted before they enter the backend, as controllers' are.

`rankbridge watch --guard` starts it in every rank of a job, and `watch.start(guard=SECONDS)` in one.
"""
