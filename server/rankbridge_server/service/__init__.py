"""gRPC adapters around `core.rank.Rank`. `wire` alone translates between core and protobuf."""
