"""Training of networks: the loop, its gradient, schedules, checkpoints, stacked replicates."""
