"""RefService: tensors in and out of a rank, by chunks and by shared memory."""
