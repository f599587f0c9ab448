"""Maxima of the likelihood without training: where parameters are few, they are solved for."""
