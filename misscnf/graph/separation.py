"""Which nodes a graph makes independent: d-separation, in time that grows with the arrows.

Two nodes are d-separated by a set Z if every path between them is blocked: by a chain or a fork
through a node of Z, or by a collider that is not in Z and has no descendant there. A walk meets a
node by an arrow into it or by one out of it, and what it may do next depends on nothing else:

- having come against an arrow, from a child, it goes on to parents and children, unless the node
  is in Z;
- having come along an arrow, from a parent, it goes on to children, unless the node is in Z, and
  back to parents if the node is in Z or has a descendant there.

So each node is visited at most twice (the Bayes ball, Shachter 1998). A graph over time has some
hundred nodes and is asked some hundred times; networkx's search, which may take up a node many
times, is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["d_separated"]

Parents = Sequence[Collection[int]]
"""By node: its direct causes."""


def d_separated(
    parents: Parents, one: Collection[int], other: Collection[int], given: Collection[int]
) -> bool:
    """Tells whether two sets of nodes are d-separated by a third; no node is in two of them."""
    children: list[list[int]] = [[] for _ in parents]
    for node, causes in enumerate(parents):
        for cause in causes:
            children[cause].append(node)
    given, wanted = set(given), set(other)
    above = _with_ancestors(parents, given)
    walk = [(node, True) for node in one]
    met = set(walk)
    while walk:
        node, from_child = walk.pop()
        if node in wanted:
            return False
        up = (node not in given) if from_child else node in above
        steps = [(cause, True) for cause in parents[node]] if up else []
        if node not in given:
            steps += [(child, False) for child in children[node]]
        fresh = [step for step in steps if step not in met]
        met.update(fresh)
        walk += fresh
    return True


def _with_ancestors(parents: Parents, nodes: Collection[int]) -> set[int]:
    """Returns the nodes and all that lead to them."""
    found, left = set(nodes), list(nodes)
    while left:
        fresh = set(parents[left.pop()]) - found
        found |= fresh
        left += fresh
    return found
