"""`import rankbridge_server.watch`: records the collectives of this process from now on, as `rankbridge watch` does.

The record's folder is that of RANKBRIDGE_WATCH_DIRECTORY, or a new one; RANKBRIDGE_GUARD begins guard, and says how
many seconds ranks wait for each other. A script that says them itself calls `rankbridge_server.job.watch.start`
instead.
"""

from .job.watch import start

__all__ = ["start"]

start()
