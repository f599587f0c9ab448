"""Training of networks: the one loop, what it follows, checkpoints, stacked replicates."""
