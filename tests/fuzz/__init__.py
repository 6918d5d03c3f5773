"""Random calls, frames and lines, most of them wrong in some way, on ranks that must go on as if nothing had been."""
