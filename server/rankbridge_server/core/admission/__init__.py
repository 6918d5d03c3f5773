"""Who may enter the backend, and with whom: the rules of a group's leader, without clocks, threads or sockets."""
