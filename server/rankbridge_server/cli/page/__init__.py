"""`rankbridge page`: a gang, or a job under `rankbridge watch`, as a live page in a browser."""

from .command import COMMAND as COMMAND
