"""Sizes that outgrow one sidecar: one large tensor, many refs, many ranks. `python -m bench.sizes`."""
