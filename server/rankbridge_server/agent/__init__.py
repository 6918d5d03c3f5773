"""Starts the ranks of one host and watches their exits. Imports neither torch nor grpc."""
