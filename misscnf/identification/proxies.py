r"""Proxies: columns that see a hidden cause well enough to stand for it.

Let u be hidden causes and x columns that together block every back door from t to y. With

    z ⟂ y | u, t, x      and      w ⟂ (t, z) | u, x,

the mean of y under do(t) solves an equation in what is shown (Miao, Geng and Tchetgen Tchetgen
2018),

    E[y | z, t, x] = E[h(w, t, x) | z, t, x],      E[y | do(t)] = E[h(w, t, x)],

if z and w see u *completely*: no function of u but zero has mean zero given every z, t, x, nor
given every w. That is an assumption, and rows cannot show it. What can be told from the graph and
the kinds of columns is where it fails for sure: a proxy that does not depend on u, fewer proxies
than hidden causes, or a proxy with fewer levels than u has (a number has no end of them).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import networkx as nx

from misscnf.graph import CausalGraph

__all__ = ["Proxies", "find_proxies"]


@dataclass(frozen=True)
class Proxies:
    """Hidden causes, and the columns that stand for them."""

    hidden: tuple[str, ...]
    of_treatment: tuple[str, ...]
    """z, which has no effect on the outcome but through the treatment"""
    of_outcome: tuple[str, ...]
    """w, which the treatment has no effect on"""
    given: tuple[str, ...]
    """x"""


def find_proxies(
    graph: CausalGraph,
    treatment: str,
    outcome: str,
    *,
    states: Mapping[str, int | None] | None = None,
    most_given: int = 2,
    most_hidden: int = 3,
) -> Proxies | None:
    """Returns proxies of hidden causes by which an effect is identified, if there are any.

    Arguments:
        graph: A graph with latent nodes.
        treatment: The column that is set.
        outcome: The column that is asked about.
        states: How many values columns have, None for no end; without it, all have no end.
        most_given: At most so many columns are conditioned on.
        most_hidden: Hidden causes of at most this many dimensions are looked for.
    """
    dag = graph.without_indicators().to_networkx()
    seek = _Search(dag, treatment, outcome, graph, states or {})
    above = nx.ancestors(dag, treatment) | nx.ancestors(dag, outcome)
    hidden = [name for name in graph.latent if name in above]
    for size in range(1, min(most_hidden, len(hidden)) + 1):
        for u in itertools.combinations(hidden, size):
            for x in _subsets([name for name in seek.not_below(u) if name in above], most_given):
                found = seek.proxies(u, x)
                if found is not None:
                    return found
    return None


def _subsets(names: Collection[str], most: int) -> Iterator[tuple[str, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations(names, size)


class _Search:
    def __init__(
        self,
        dag: nx.DiGraph,
        treatment: str,
        outcome: str,
        graph: CausalGraph,
        states: Mapping[str, int | None],
    ) -> None:
        self.dag, self.t, self.y, self.graph, self.states = dag, treatment, outcome, graph, states
        self.back = dag.copy()
        self.back.remove_edges_from(list(dag.out_edges(treatment)))
        self.shown = [
            name
            for name in graph.nodes
            if name in dag
            and name not in {*graph.latent, *graph.auxiliary}
            and name not in (treatment, outcome)
        ]

    def not_below(self, hidden: Collection[str]) -> list[str]:
        """Returns the columns that the treatment has no effect on."""
        below = nx.descendants(self.dag, self.t)
        return [] if below & set(hidden) else [name for name in self.shown if name not in below]

    def proxies(self, u: tuple[str, ...], x: tuple[str, ...]) -> Proxies | None:
        """Returns proxies of some hidden causes beside some columns."""
        below = nx.descendants(self.dag, self.t)
        if below & set(u) or not nx.is_d_separator(self.back, {self.t}, {self.y}, {*u, *x}):
            return None
        rest = [name for name in self.shown if name not in x]
        zs = [z for z in rest if self._apart({z}, {self.y}, {*u, self.t, *x})]
        ws = [w for w in rest if self._apart({w}, {self.t}, {*u, *x})]
        for z in itertools.combinations(zs, len(u)):
            if not self._sees(z, u, {self.t, *x}):
                continue
            for w in itertools.combinations([w for w in ws if w not in z], len(u)):
                separate = self._apart(set(w), {self.t, *z}, {*u, *x})
                if separate and self._sees(w, u, set(x)):
                    return Proxies(u, z, w, x)
        return None

    def _apart(self, one: set[str], other: set[str], given: set[str]) -> bool:
        return bool(nx.is_d_separator(self.dag, one, other, given))

    def _sees(self, proxies: tuple[str, ...], u: tuple[str, ...], given: set[str]) -> bool:
        """Says whether each hidden cause has a proxy of its own that can tell its values apart."""
        return any(
            all(
                self._tells(p, name, {*u} - {name} | given)
                for p, name in zip(order, u, strict=True)
            )
            for order in itertools.permutations(proxies)
        )

    def _tells(self, proxy: str, hidden: str, given: set[str]) -> bool:
        levels, classes = self.states.get(proxy), self.graph.latent[hidden]
        enough = levels is None or (classes is not None and levels >= classes)
        return enough and not self._apart({proxy}, {hidden}, given)
