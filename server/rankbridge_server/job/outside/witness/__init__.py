"""The witness: a process beside the ranks of a host. It answers observers for ranks that do not run Python."""
