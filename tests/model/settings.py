"""How many schedules are tried."""
from hypothesis import HealthCheck, settings
import os
THOROUGH = os.environ.get("RANKBRIDGE_MODEL") == "thorough"
MODEL = settings(
    max_examples=4000 if THOROUGH else 150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
