r"""What has to be integrated, and what has not: the plan of an incomplete table.

For a row that shows O, let A be O with all its ancestors. Nodes outside A are *barren*: they
integrate to one and never enter. M' = A \ O is *hidden*. With φ_i = p(x_i | x_pa(i)) and
H_i = ({i} ∪ pa(i)) ∩ M',

    log p(x_O) = Σ_{H_i = ∅} log φ_i  +  Σ_c log E_u [ Π_{i ∈ O, ∅ ≠ H_i ⊆ c} φ_i ].

Factors with H_i = ∅ are *free*: evaluated once, exactly. The other hidden nodes fall apart into
*components* c, linked where some H_i holds two of them; given O, components are independent, so
that one large integral is a product of small ones. Factors of observed nodes with hidden parents
are the *evidence* of a component. This is Proposition 1 of the paper, applied per component.

Clamped nodes (interventions) are held: they have no factor, and do not pull in their parents.

The plan is made once per distinct pattern of holes, as index arrays; a step then visits each node
once, whatever the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from misscnf.data.patterns import as_keys, from_keys
from misscnf.data.rows import RowSource
from misscnf.graph import CausalGraph
from misscnf.threads import in_order

__all__ = ["Plan", "Components"]


@dataclass(frozen=True)
class Plan:
    """Which cells of a row are free, hidden, barren or evidence. P patterns, N rows, d nodes."""

    graph: CausalGraph
    pattern: Tensor
    """(N,) index of each row's pattern in the tables below."""
    observed: Tensor
    """(P, d) True where a value is there (or clamped)."""
    hidden: Tensor
    """(P, d) unobserved ancestors of what is observed."""
    free: Tensor
    """(P, d) factors with nothing hidden in them."""
    label: Tensor
    """(P, d) for hidden nodes and for evidence: the smallest node of the component, else −1."""

    @staticmethod
    def make(
        graph: CausalGraph, observed: Tensor, *, clamped: Iterable[int] = (), joint: bool = False
    ) -> Plan:
        """Returns the plan of a table.

        Arguments:
            graph: The causal graph.
            observed: (N, d), True where a value is there.
            clamped: Nodes held by an intervention, in all rows.
            joint: Whether all that is hidden in a row forms one component, as in Algorithm 1.
        """
        held, observed = frozenset(clamped), observed.clone()
        observed[:, sorted(held)] = True
        return Plan._of_patterns(graph, *_distinct_rows([observed], most=1), held, joint=joint)

    @staticmethod
    def of(graph: CausalGraph, rows: RowSource, *, joint: bool = False) -> Plan:
        """Plans the rows of a source, of which it only keeps the packed patterns of holes."""
        observed = (batch.observed for batch in rows.batches())
        return Plan._of_patterns(graph, *_distinct_rows(observed), frozenset(), joint=joint)

    @staticmethod
    def _of_patterns(
        graph: CausalGraph, patterns: Tensor, pattern: Tensor, held: frozenset[int], *, joint: bool
    ) -> Plan:
        factor = patterns.clone()
        factor[:, sorted(held)] = False
        closure = _closure(graph, patterns, held)
        whole = torch.stack([patterns[:, list(pa)].all(1) for pa in graph.parents], dim=1)
        hidden = closure & ~patterns
        if joint:  # one label for all that is hidden in a row
            smallest = hidden.int().argmax(dim=1, keepdim=True).int()
            label = torch.where(hidden, smallest, len(graph))
        else:
            label = _component_label(graph, closure & (factor | ~patterns), hidden)
        label = _with_evidence(graph, label, factor & ~whole)
        return Plan(graph, pattern, patterns, hidden, factor & whole, label)

    def __len__(self) -> int:
        return len(self.pattern)

    def select(self, rows: Tensor) -> Plan:
        """Returns the plan of some of the rows."""
        return replace(self, pattern=self.pattern[rows])

    def to(self, device: torch.device | str) -> Plan:
        """Returns the plan with its arrays on a device."""
        names = ("pattern", "observed", "hidden", "free", "label")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def largest(self) -> int:
        """Returns how many nodes are hidden together, at most."""
        counts = torch.zeros_like(self.label).scatter_add_(
            1, self.label.long().clamp(min=0), self.hidden.to(self.label)
        )
        return int(counts.max()) if counts.numel() else 0

    def barren(self) -> Tensor:
        """Returns (N, d), True where a cell is neither observed nor an ancestor of one."""
        return ~(self.observed | self.hidden)[self.pattern]

    def free_factors(self) -> tuple[Tensor, Tensor]:
        """Returns nodes and rows of the free factors, sorted by node."""
        node, row = self.free[self.pattern].T.nonzero(as_tuple=True)
        return node, row

    def components(self) -> Components:
        """Returns the components of all rows."""
        hidden, label = self.hidden[self.pattern].T, self.label[self.pattern].T
        nodes = torch.arange(len(self.graph), device=label.device)[:, None]
        # The smallest node of each component stands for it; numbered along rows.
        first = (hidden & (label == nodes)).T
        number = (first.flatten().cumsum(0) - 1).reshape(first.shape)
        cell_node, cell_row = hidden.nonzero(as_tuple=True)
        evidence_node, evidence_row = ((label >= 0) & ~hidden).nonzero(as_tuple=True)
        cell_component = number[cell_row, label[cell_node, cell_row].long()]
        evidence_component = number[evidence_row, label[evidence_node, evidence_row].long()]
        row, node = first.nonzero(as_tuple=True)
        size = torch.bincount(cell_component, minlength=len(row))
        cells = cell_node, cell_row, cell_component
        evidence = evidence_node, evidence_row, evidence_component
        return Components(row, node, size, *cells, *evidence)


@dataclass(frozen=True)
class Components:
    """Hidden cells and the evidence on them, sorted by node. C components, H cells, E factors."""

    row: Tensor
    """(C,) the row of each component."""
    node: Tensor
    """(C,) its first hidden node."""
    size: Tensor
    """(C,) how many hidden nodes it holds."""
    cell_node: Tensor
    cell_row: Tensor
    cell_component: Tensor
    """(H,) each"""
    evidence_node: Tensor
    evidence_row: Tensor
    evidence_component: Tensor
    """(E,) each"""

    def __len__(self) -> int:
        return len(self.row)

    def select(self, keep: Tensor) -> Components:
        """Returns the components where keep (C,) is True, renumbered in their order."""
        if keep.all():
            return self
        number = keep.cumsum(0) - 1

        def kept(node: Tensor, row: Tensor, component: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mine = keep[component]
            return node[mine], row[mine], number[component[mine]]

        cells = kept(self.cell_node, self.cell_row, self.cell_component)
        evidence = kept(self.evidence_node, self.evidence_row, self.evidence_component)
        return Components(self.row[keep], self.node[keep], self.size[keep], *cells, *evidence)

    def with_evidence(self, keep: Tensor) -> Components:
        """Returns the components with some of their evidence, (E,) True where kept."""
        return replace(
            self,
            evidence_node=self.evidence_node[keep],
            evidence_row=self.evidence_row[keep],
            evidence_component=self.evidence_component[keep],
        )

    def split(self, part: Tensor) -> list[Components]:
        """Returns the components of each part, (C,) 0, 1, …, in one pass over the cells."""
        count = int(part.max()) + 1 if len(part) else 0
        if count == 1:
            return [self]
        order = torch.argsort(part, stable=True)
        sizes = torch.bincount(part, minlength=count)
        number = torch.empty_like(order)
        number[order] = torch.arange(len(order), device=order.device)
        number -= (sizes.cumsum(0) - sizes)[part]

        def pieces(of: Tensor, *columns: Tensor) -> list[list[Tensor]]:
            order = torch.argsort(of, stable=True)  # keeps the order of nodes within a part
            counts = torch.bincount(of, minlength=count).tolist()
            return [list(column[order].split(counts)) for column in columns]

        whole = pieces(part, self.row, self.node, self.size)
        of = self.cell_component
        cells = pieces(part[of], self.cell_node, self.cell_row, number[of])
        of = self.evidence_component
        evidence = pieces(part[of], self.evidence_node, self.evidence_row, number[of])
        return [Components(*columns) for columns in zip(*whole, *cells, *evidence, strict=True)]

    def factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns node, row and component of all factors: of hidden cells, then of evidence."""
        return (
            torch.cat([self.cell_node, self.evidence_node]),
            torch.cat([self.cell_row, self.evidence_row]),
            torch.cat([self.cell_component, self.evidence_component]),
        )

    def touching(self, nodes: Tensor) -> Tensor:
        """Returns (C,), True where a factor of the component belongs to a node in nodes (d,)."""
        node, _, component = self.factors()
        touched = torch.zeros_like(self.row, dtype=torch.bool)
        touched[component[nodes[node]]] = True
        return touched

    def hiding(self, nodes: Tensor) -> Tensor:
        """Returns (C,), True where the component hides a node in nodes (d,)."""
        found = torch.zeros_like(self.row, dtype=torch.bool)
        found[self.cell_component[nodes[self.cell_node]]] = True
        return found

    def slots(self) -> Tensor:
        """Returns (H,), the place of each cell within its component, in graph order."""
        order = torch.argsort(self.cell_component, stable=True)
        start = (torch.cumsum(self.size, 0) - self.size)[self.cell_component[order]]
        slot = torch.empty_like(order)
        slot[order] = torch.arange(len(order), device=order.device) - start
        return slot


def _distinct_rows(observed: Iterable[Tensor], most: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the distinct rows of boolean matrices and where each row is among them."""

    def of_batch(like: Tensor) -> tuple[np.ndarray, np.ndarray, Tensor]:
        distinct, of = np.unique(as_keys(like.cpu().numpy()), return_inverse=True)
        return distinct, of.ravel(), like[:1]

    # those of a batch first: they are few, and soon sorted
    found, inverse, likes = map(list, zip(*in_order(of_batch, observed, most), strict=True))
    like = likes[0]
    distinct, pattern = found[0], inverse[0]
    if len(found) > 1:
        distinct, place = np.unique(np.concatenate(found), return_inverse=True)
        places = np.split(place.ravel(), np.cumsum([len(some) for some in found])[:-1])
        pattern = np.concatenate([at[of] for at, of in zip(places, inverse, strict=True)])
    patterns = from_keys(distinct, like.shape[1])
    return torch.from_numpy(patterns).to(like.device), torch.from_numpy(pattern).to(like.device)


def _closure(graph: CausalGraph, observed: Tensor, held: frozenset[int]) -> Tensor:
    """Returns the observed nodes with all their ancestors, cut at the held ones."""
    closure = observed.clone()
    for i in reversed(range(len(graph))):
        if i not in held:
            for j in graph.parents[i]:
                closure[:, j] |= closure[:, i]
    return closure


def _component_label(graph: CausalGraph, closure: Tensor, hidden: Tensor) -> Tensor:
    """Returns the smallest hidden node linked to each hidden node, d elsewhere.

    Labels flow along families until nothing changes, down and up the graph in turn. The family
    of a barren child links nothing: its factor is never used.
    """
    d = len(graph)
    nodes = torch.arange(d, dtype=torch.int32, device=closure.device)
    label = torch.where(hidden, nodes, d)
    families = [[i, *parents] for i, parents in enumerate(graph.parents) if parents]
    while True:
        before = label.clone()
        for family in (*families, *reversed(families)):
            members = (label[:, family] < d) & closure[:, family[:1]]
            smallest = torch.where(members, label[:, family], d).amin(1, keepdim=True)
            label[:, family] = torch.where(members, smallest, label[:, family])
        if torch.equal(before, label):
            return label


def _with_evidence(graph: CausalGraph, label: Tensor, evidence: Tensor) -> Tensor:
    """Gives each piece of evidence the label of its hidden parents, and −1 to what has none."""
    result = torch.where(label < len(graph), label, -1)
    for i, parents in enumerate(graph.parents):
        if parents:
            among_parents = label[:, list(parents)].amin(1)
            result[:, i] = torch.where(evidence[:, i], among_parents, result[:, i])
    return result
