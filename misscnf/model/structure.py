r"""What is known of a model before a fit: graph, domains, and which nodes share a mechanism.

    x_i = f_{k(i)}(u_i; x_pa(i)),      k(i) the key of node i

Nodes with the same key are served by one mechanism: repeated measures, exchangeable siblings. The
parameters of a mechanism are a *block*; what fits, replicates or stores a model loops over blocks,
so that a shared weight is one parameter, not several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from misscnf.data.domains import Domain
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Mechanism, Shape
from misscnf.mechanisms.history import read_domains
from misscnf.model.structural import StructuralModel, nodes_by_key

__all__ = ["Structure"]


@dataclass(frozen=True)
class Structure:
    """A graph whose nodes have domains, and keys that say which share a mechanism.

    Example:
        >>> from misscnf.data.domains import Continuous
        >>> graph = CausalGraph.read("dose -> day1; dose -> day2")
        >>> structure = Structure.of(graph, [Continuous()] * 3, keys=["dose", "day", "day"])
        >>> structure.blocks  # both days are served by one mechanism
        ((0,), (1, 2))
        >>> model = structure.build(Shape(hidden=()))
        >>> model.mechanism(1) is model.mechanism(2)
        True
    """

    graph: CausalGraph
    """Who is a cause of whom."""
    domains: tuple[Domain, ...]
    """What the values of each node can be."""
    keys: tuple[str, ...]
    """The key of each node; its name where it shares with no one."""
    lines: frozenset[int] = frozenset()
    """Nodes that ask for no more than a line, since no answer leans on their law."""
    blocks: tuple[tuple[int, ...], ...] = field(init=False)
    """The nodes of each block, by their first node."""

    def __post_init__(self) -> None:
        blocks = tuple(nodes_by_key(self.keys).values())
        object.__setattr__(self, "blocks", blocks)
        for first, *others in blocks:
            for node in others:
                self._check_tie(first, node)

    @staticmethod
    def of(
        graph: CausalGraph,
        domains: Iterable[Domain],
        keys: Sequence[str] | None = None,
        lines: Iterable[int] = (),
    ) -> Structure:
        """Makes one; without keys, no mechanism is shared."""
        return Structure(graph, tuple(domains), tuple(keys or graph.nodes), frozenset(lines))

    def may_grow(self, block: int) -> bool:
        """Says whether a block may be more than a line, and rows can show its family whole."""
        return not (self.lines.issuperset(self.blocks[block]) or self.beside_hidden(block))

    def may_bend_beside_hidden(self, block: int) -> bool:
        """Says whether a block with hidden parents may be more than a line."""
        return self.beside_hidden(block) and not self.lines.issuperset(self.blocks[block])

    def beside_hidden(self, block: int) -> bool:
        """Says whether a hidden cause is in the family of a block: no row shows it whole."""
        hidden, families = self.graph.latent_nodes, self.graph.families
        return any(hidden.intersection(families[i]) for i in self.blocks[block])

    def _check_tie(self, first: int, node: int) -> None:
        mine, its = (
            [self.domains[i].kind, *(domain.kind for domain in self.reads(i))]
            for i in (first, node)
        )
        if mine != its:
            raise InputError(
                f"{self.graph.nodes[first]!r} and {self.graph.nodes[node]!r} are to share a "
                f"mechanism, and are {_kinds(mine)} and {_kinds(its)}; tie nodes of one kind with "
                f"parents of the same kinds, in the same order."
            )

    def check(self, model: StructuralModel) -> None:
        """Refuses a model whose mechanisms are for other domains than the nodes have."""
        for node, name in enumerate(self.graph.nodes):
            law, own = model.mechanism(node).domain, self.domains[node]
            if (law.kind, law.states) != (own.kind, own.states):
                raise InputError(
                    f"{name!r} is {own.kind} with {own.states or 'any'} values, and its mechanism "
                    f"is {law.kind} with {law.states or 'any'}; fit the model again."
                )
        noise = torch.zeros(1, model.noise_width, dtype=torch.float64)
        with torch.no_grad():
            model.log_prob(model.generate(noise))  # mechanisms read as many parents as they have

    def reads(self, node: int) -> tuple[Domain, ...]:
        """Returns the domains of what a node's mechanism reads: its parents, or histories."""
        parents = [self.domains[j] for j in self.graph.parents[node]]
        return read_domains(self.graph.readings.get(node), parents)

    def parents_of(self, block: int) -> tuple[Domain, ...]:
        """Returns the domains of what a block's mechanism reads."""
        return self.reads(self.blocks[block][0])

    def domain_of(self, block: int) -> Domain:
        """Returns the domain of a block's values."""
        return self.domains[self.blocks[block][0]]

    def model(self, mechanisms: Sequence[Mechanism]) -> StructuralModel:
        """Makes a model of one mechanism a block."""
        keys = [self.keys[nodes[0]] for nodes in self.blocks]
        return StructuralModel(self.graph, dict(zip(keys, mechanisms, strict=True)), self.keys)

    def build(self, shapes: Shape | Sequence[Shape]) -> StructuralModel:
        """Makes a model of mechanisms of a shape, one for all blocks or one for each."""
        each = [shapes] * len(self.blocks) if isinstance(shapes, Shape) else shapes
        built = (s.build(self.parents_of(k), self.domain_of(k)) for k, s in enumerate(each))
        return self.model(list(built))


def _kinds(kinds: Sequence[str]) -> str:
    own, *parents = kinds
    return f"{own} given {', '.join(parents)}" if parents else own
