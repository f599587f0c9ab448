r"""One pass through the graph for all hidden cells of many rows at once.

Noise of the hidden cells goes in; their values and the log-evidence of their components come out
(the loop of Algorithm 1). Nodes are visited in graph order; each makes at most two calls to its
mechanism for hidden cells (one where all parents are observed, shared by all draws of a row, one
where some are hidden) and one for evidence, whatever the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = ["Sweep", "Visit"]


@dataclass(frozen=True)
class Visit:
    """Cells or pieces of evidence of one node that one call to its mechanism serves. n of them."""

    node: int
    at: Tensor
    """(n,) which cells of the sweep are generated, or which components the evidence falls on."""
    own: Tensor | None
    """(n, 1) the observed values, for evidence."""
    seen: Tensor
    """(n, p) the observed parents' values."""
    cell: Tensor | None
    """(n, p) which cells the hidden parents are, −1 where observed; None where all are."""

    @cached_property
    def hidden(self) -> list[Literal["never", "always", "sometimes"]]:
        """For each parent, in which of these cells it is hidden."""
        assert self.cell is not None
        hidden = self.cell >= 0
        ends = zip(hidden.any(0).tolist(), hidden.all(0).tolist(), strict=True)
        return ["always" if all_ else "sometimes" if any_ else "never" for any_, all_ in ends]

    def parents(self, values: Tensor) -> Tensor:
        """Returns the parents where hidden cells have values (H, K): (n, K, p), or (n, 1, p)."""
        if self.cell is None:
            return self.seen[:, None, :]
        columns = []
        for j, hidden in enumerate(self.hidden):
            seen = self.seen[:, j, None]
            if hidden == "never":
                columns.append(seen.expand(-1, values.shape[1]))
                continue
            cell = self.cell[:, j, None]
            drawn = values[cell[:, 0].clamp(min=0)]
            columns.append(drawn if hidden == "always" else torch.where(cell >= 0, drawn, seen))
        return torch.stack(columns, dim=-1)


class Sweep:
    """Carries noise of hidden cells to their values and to the evidence on them.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes.
        components: What is hidden, and its evidence.
    """

    def __init__(self, model: StructuralModel, values: Tensor, components: Components) -> None:
        self.model, self.components = model, components
        self.slot = components.slots()
        """(H,) the place of each cell in its component"""
        number = torch.arange(len(components.cell_node), device=values.device)
        # Column by column in memory, as nodes read it.
        self._cell_of = torch.full(values.T.shape, -1, dtype=torch.int64, device=values.device).T
        self._cell_of[components.cell_row, components.cell_node] = number
        self.visits = list(self._plan(values))

    def _plan(self, values: Tensor) -> Iterator[Visit]:
        c, d = self.components, len(self.model.graph)
        cell_ends = torch.bincount(c.cell_node, minlength=d).cumsum(0).tolist()
        evidence_ends = torch.bincount(c.evidence_node, minlength=d).cumsum(0).tolist()
        cell_start = evidence_start = 0
        for node in range(d):
            cells = slice(cell_start, cell_ends[node])
            evidence = slice(evidence_start, evidence_ends[node])
            cell_start, evidence_start = cells.stop, evidence.stop
            if cells.stop > cells.start:
                at = torch.arange(cells.start, cells.stop, device=values.device)
                yield from self._hidden_visits(values, node, c.cell_row[cells], at)
            if evidence.stop > evidence.start:
                rows = c.evidence_row[evidence]
                seen, cell = self._parents(values, node, rows)
                own = values[rows, node][:, None]
                yield Visit(node, c.evidence_component[evidence], own, seen, cell)

    def _parents(self, values: Tensor, node: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        parents = torch.tensor(self.model.graph.parents[node]).to(rows)
        where = (rows[:, None], parents[None, :])
        return values[where], self._cell_of[where]

    def _hidden_visits(
        self, values: Tensor, node: int, rows: Tensor, at: Tensor
    ) -> Iterator[Visit]:
        seen, cell = self._parents(values, node, rows)
        drawn = (cell >= 0).any(1)
        if not drawn.all():
            yield Visit(node, at[~drawn], None, seen[~drawn], None)
        if drawn.any():
            yield Visit(node, at[drawn], None, seen[drawn], cell[drawn])

    def cells(self, visit: Visit) -> Tensor:
        """Returns the components of the hidden cells of a visit, (n,)."""
        return self.components.cell_component[visit.at]

    def parent_slots(self, visit: Visit) -> Tensor:
        """Returns the slots of hidden parents with invertible mechanisms, (n, p); else −1."""
        if visit.cell is None:
            return torch.full_like(visit.seen, -1, dtype=torch.int64)
        parents = self.model.graph.parents[visit.node]
        found = [self.model.mechanism(j).invertible for j in parents]
        invertible = torch.tensor(found, device=visit.cell.device)
        slots = self.slot[visit.cell.clamp(min=0)]
        return torch.where((visit.cell >= 0) & invertible, slots, -1)

    def read_by_evidence(self) -> Tensor:
        """Says which hidden cells are parents of an observed node, (H,)."""
        read = torch.zeros_like(self.slot, dtype=torch.bool)
        for visit in self.visits:
            if visit.own is not None and visit.cell is not None:
                read[visit.cell[visit.cell >= 0]] = True
        return read

    @property
    def atoms(self) -> int:
        """The most point masses that a hidden cell has."""
        mixtures = [
            self.model.mechanism(visit.node).mixture(visit.seen[:1])
            for visit in self.visits
            if visit.own is None
        ]
        return max((len(found.atoms) for found in mixtures if found is not None), default=0)

    def __call__(self, noise: Tensor, part: int | None = None) -> tuple[Tensor, Tensor]:
        """Sweeps noise (H, K); returns values (H, K) and log-evidence (C, K).

        With a part, cells come from that part of their law alone, and its mass is evidence: 0 is
        the rest, 1 the first point mass, and so on. A law without point masses is all rest.
        """
        values = torch.zeros_like(noise)
        log_evidence = noise.new_zeros(len(self.components), noise.shape[1])
        for visit in self.visits:
            mechanism = self.model.mechanism(visit.node)
            parents = visit.parents(values)
            if visit.own is not None:
                log_evidence.index_add_(0, visit.at, mechanism.log_prob(visit.own, parents))
            elif part is None:
                values.index_copy_(0, visit.at, mechanism.draw(noise[visit.at], parents))
            else:
                drawn, log_mass = _drawn_part(mechanism, noise[visit.at], parents, part)
                values.index_copy_(0, visit.at, drawn)
                log_evidence.index_add_(0, self.cells(visit), log_mass.expand_as(drawn))
        return values, log_evidence

    def abduct(self, values: Tensor) -> Tensor:
        """Returns the noise (H, K) that makes values (H, K); zero where several do."""
        noise = torch.zeros_like(values)
        for visit in self.visits:
            mechanism = self.model.mechanism(visit.node)
            if visit.own is None and mechanism.invertible:
                found = mechanism.abduct(values[visit.at], visit.parents(values))
                noise.index_copy_(0, visit.at, found)
        return noise

    def log_evidence(self, values: Tensor) -> Tensor:
        """Returns log p of the evidence at values (H, K) of the hidden cells, shape (C, K)."""
        total = values.new_zeros(len(self.components), values.shape[1])
        for visit in self.visits:
            if visit.own is not None:
                mechanism = self.model.mechanism(visit.node)
                log_prob = mechanism.log_prob(visit.own, visit.parents(values))
                total.index_add_(0, visit.at, log_prob.expand(-1, values.shape[1]))
        return total

    def log_joint(self, values: Tensor) -> Tensor:
        """Returns log p of the hidden cells and their evidence at values (H, K), shape (C, K)."""
        total = values.new_zeros(len(self.components), values.shape[1])
        for visit in self.visits:
            mechanism, parents = self.model.mechanism(visit.node), visit.parents(values)
            own, at = visit.own, visit.at
            if own is None:
                own, at = values[visit.at], self.components.cell_component[visit.at]
            log_prob = mechanism.log_prob(own, parents).expand(-1, values.shape[1])
            total = total.index_add(0, at, log_prob)
        return total


def _drawn_part(
    mechanism: Mechanism, noise: Tensor, parents: Tensor, part: int
) -> tuple[Tensor, Tensor]:
    """Returns values (n, K) of one part of a law, and the log of its mass."""
    found = mechanism.mixture(parents)
    if found is None or part > len(found.atoms):
        all_or_nothing = noise.new_full((1, 1), -torch.inf if part else 0.0)
        return mechanism.draw(noise, parents), all_or_nothing
    log_mass = found.log_mass[..., part]
    if part == 0:
        return found.rest(noise), log_mass
    return torch.full_like(noise, float(found.atoms[part - 1])), log_mass
