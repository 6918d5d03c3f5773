"""What lives in the user's own process: functions on ranks, and the torch.distributed that they find there."""
