"""Streams of calls to one rank: over gRPC, and over a unix socket without it."""
