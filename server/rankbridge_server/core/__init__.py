"""Groups, refs, sessions, lanes, admission, generations, errors. Standard library only: no grpc, no torch."""
