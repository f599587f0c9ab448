"""Selection: which form of a mechanism each node earns on rows that were left out."""
