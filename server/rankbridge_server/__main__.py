"""`python -m rankbridge_server`: the command line."""

import sys

from .cli import main

sys.exit(main())
