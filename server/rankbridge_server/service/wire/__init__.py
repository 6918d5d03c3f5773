"""Conversions between the core's types and protobuf's."""
