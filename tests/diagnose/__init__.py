"""Faults of torch.distributed jobs as programs, and what `rankbridge doctor` says of each: `make diagnose`."""
