# Tensors by memory that a rank and its caller share.
&RankBridge.Bench.transfers(&1, :shared)
