"""The logger of ranks. The command line says where it writes; programs that embed a rank configure it themselves."""

import logging

LOGGER = logging.getLogger("rankbridge")
LOGGER.addHandler(logging.NullHandler())
