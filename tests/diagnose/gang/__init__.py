"""The programs on a gang: functions in its ranks, and a controller with a thread for each rank."""
