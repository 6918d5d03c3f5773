"""A test harness on gangs: scenarios as data, a driver on standard input and output, a plugin for pytest.

A controller program above the blocking client, without torch. Nothing is imported here: each command takes what it
needs.
"""
