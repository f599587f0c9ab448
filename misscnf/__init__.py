"""Causal normalizing flows learned from tables with holes."""
