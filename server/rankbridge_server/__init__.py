"""The sidecar: gRPC services around the collectives of one rank of a torch.distributed job."""
