"""Between the core's types and protobuf's."""
