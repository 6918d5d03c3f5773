"""`python -m rankbridge_server.job.outside.witness FOLDER LOCK`: a rank starts it, and it leaves the rank at once."""

import os
import sys

if __name__ == "__main__":
    # Before anything is loaded: it must be nobody's child, and what it loads has threads.
    if os.fork():
        os._exit(0)
    from .witness import run

    run(sys.argv[1])
