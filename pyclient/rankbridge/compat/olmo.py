"""OLMo-core's utilities over a gang, blocking."""

from rankbridge._sync.compat.olmo import do_n_at_a_time, is_distributed, synchronize_flag, synchronize_value

__all__ = ["do_n_at_a_time", "is_distributed", "synchronize_flag", "synchronize_value"]
