"""What torch's own tools say of the same programs: DETAIL, monitored_barrier, torchfrtrace."""
