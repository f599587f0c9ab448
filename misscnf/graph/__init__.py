"""The causal graph: a named DAG, read from anything that people have.

dag        the graph itself: parents, descendants, the order of nodes
indicators, latents    nodes that are no columns: whether a value is lost, and hidden causes
separation    which nodes the graph makes independent
readers    text and files as people write them: arrows, DOT, dagitty, lavaan, GML, CSV, JSON, YAML
"""

from misscnf.graph.dag import CausalGraph, GraphLike

__all__ = ["CausalGraph", "GraphLike"]
