"""Generator of Elixir modules from protocol buffer descriptors.

One `.pb.ex` file for each `.proto` file, already in the form that `mix format` gives. The structs follow the
conventions of the elixir-protobuf package; the work on bytes is done by `RankBridge.Protobuf`, so that the
generated modules are little more than tables. Only what rankbridge uses is supported: proto3 without maps,
groups, extensions and enum aliases. Anything else is refused with a message.
"""
