"""The rules by which a group's leader admits operations and matches posts, without clocks, threads or sockets."""
