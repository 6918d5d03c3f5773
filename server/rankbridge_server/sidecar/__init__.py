"""A rank put together: backend, links, core and server, and what is written for controllers to find it."""
