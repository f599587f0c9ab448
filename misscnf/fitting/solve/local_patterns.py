r"""The likelihood of a linear-Gaussian table, at a cost that follows its holes.

With z_i = (1, x_i, x_pa(i)) and a_i = (−b_i, 1, −w_i), every factor is a quadratic form,

    log φ_i = −½ [ log 2π s_i² + z_iᵀ K_i z_i ],      K_i = a_i a_iᵀ / s_i².

The hidden nodes of a row fall apart into components (`inference.elimination`). One that hides h,
beside the cells v = (1, what its factors show), has the closed form

    log ∫ Π φ_i dh = … + ½ [ m log 2π − log|Λ| + ηᵀ Λ⁻¹ η ],   Λ = Σ K_hh,   η = −Σ K_hv v.

Λ depends only on which nodes are hidden and which are evidence: the *local pattern*, of which
there are far fewer than rows. Rows that share it share one root of Λ, and enter through Σ v vᵀ
alone, so that min(n, cells) vectors with that sum stand for all n of them.

The same numbers give the expected moments of every family, M_i = Σ_rows E[z_i z_iᵀ | x_O], and by
Fisher's identity the gradient of log L by a_i and s_i is that of −½ Σ_i [n_i log s_i² + K_i · M_i]
with these held fixed. Nothing is as large as patterns × d².
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from misscnf.data.rows import ROWS_AT_ONCE, Batch, RowSource
from misscnf.draws import derive_generator
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Components, Plan
from misscnf.threads import in_order

__all__ = ["Families", "LinearRows"]


class Families:
    """Vectors z_i and matrices K_i of all nodes, laid out one after the other.

    Arguments:
        graph: The graph, of d nodes.
    """

    def __init__(self, graph: CausalGraph) -> None:
        d = len(graph)
        self.members = [[d, i, *parents] for i, parents in enumerate(graph.parents)]
        """Of z_i: d stands for the constant."""
        sizes = torch.tensor([len(members) for members in self.members])
        self.first = (sizes.cumsum(0) - sizes).tolist()
        """Where z_i starts."""
        self.length = int(sizes.sum())
        self.first_pair = (sizes.square().cumsum(0) - sizes.square()).tolist()
        """Where K_i starts."""
        places = [
            torch.arange(size) + start for size, start in zip(sizes, self.first, strict=True)
        ]
        self.pairs = torch.cat([torch.cartesian_prod(part, part) for part in places]).T
        """(2, Σ (p + 2)²) the two places of every entry of K in the vectors"""
        self.node = torch.arange(d).repeat_interleave(sizes.square())
        """The node of every entry of K."""

    def products(self, a: Tensor, log_scale: Tensor) -> Tensor:
        """Returns all K_i, from all a_i and the log-scales of the nodes."""
        return a[self.pairs[0]] * a[self.pairs[1]] * torch.exp(-2.0 * log_scale)[self.node]


@dataclass(frozen=True)
class _Bucket:
    """L local patterns that hide m nodes each, with r vectors for their rows.

    A pair is two members of one family: hidden and hidden, or hidden and shown.
    """

    count: Tensor
    """(L,) rows of each"""
    cells: Tensor
    """(cells, r) what stands for the cells that the rows show, padded by zeros"""
    hidden: Tensor
    """(2, pairs): the entry of K, and its place in Λ (L, m, m)"""
    shown: Tensor
    """(3, pairs): the entry of K, the hidden member in (L, m), the shown one among cells"""
    size: int
    """m"""

    def log_prob(self, products: Tensor, moments: Tensor) -> Tensor:
        """Returns log L without its constants, or nan; adds E[z zᵀ] of what is hidden."""
        patterns, m, width = len(self.count), self.size, self.cells.shape[1]
        entry, place = self.hidden
        precision = products.new_zeros(patterns * m * m).index_add_(0, place, products[entry])
        root, failed = torch.linalg.cholesky_ex(precision.reshape(patterns, m, m))
        if failed.any():
            return products.new_tensor(math.nan)
        inverse = torch.cholesky_inverse(root)
        shown_entry, slot, cell = self.shown
        values = self.cells[cell]
        pull = products.new_zeros(patterns * m, width)
        pull.index_add_(0, slot, -products[shown_entry, None] * values)
        pull = pull.reshape(patterns, m, width)
        mean = inverse @ pull
        second = mean @ mean.transpose(1, 2) + self.count[:, None, None] * inverse
        moments.index_add_(0, entry, second.flatten()[place])
        across = (mean.reshape(-1, width)[slot] * values).sum(1)
        moments.index_add_(0, shown_entry, 2.0 * across)  # and those of shown and hidden
        log_det = 2.0 * root.diagonal(dim1=1, dim2=2).log().sum(1)
        return 0.5 * ((pull * mean).sum() - (self.count * log_det).sum())


class LinearRows:
    """What a linear-Gaussian model has to know of a table.

    Arguments:
        graph: The graph.
        rows: The rows.
        centre: What is taken off every column, (d,), against rounding.
    """

    def __init__(self, graph: CausalGraph, rows: RowSource, centre: Tensor) -> None:
        self.families = Families(graph)
        plan = Plan.of(graph, rows)
        patterns = _LocalPatterns(self.families, plan)
        used = (plan.observed | plan.hidden).double()
        self.count = torch.bincount(plan.pattern).double() @ used
        """(d,) rows that have each node's factor"""
        self.shown = torch.zeros(len(self.families.node), dtype=torch.float64)
        """Of M_i, what the rows show."""
        self._constant = -math.log(2.0 * math.pi) * float(self.count.sum() - patterns.hidden)

        def sums(part: tuple[Tensor, Batch]) -> tuple[Tensor, dict[int, Tensor]]:
            mine, batch = plan.select(part[0]), part[1]
            values = torch.where(batch.observed, batch.values - centre, 0.0)
            values = torch.cat([values, torch.ones_like(values[:, :1])], 1)
            shown = _shown_moments(self.families, values, ~mine.barren())
            return shown, patterns.of_part(values, mine)

        numbers = torch.arange(len(rows)).split(ROWS_AT_ONCE)
        for shown, found in in_order(sums, zip(numbers, rows.batches(), strict=True)):
            self.shown += shown
            patterns.add(found)
        self._buckets = list(patterns.buckets())

    def log_prob(self, a: Tensor, log_scale: Tensor) -> tuple[Tensor, Tensor]:
        """Returns log L, nan where rounding breaks it, and a function with the same gradient.

        Arguments:
            a: All a_i, as `Families` has them.
            log_scale: (d,)
        """
        products = self.families.products(a, log_scale)
        fixed, moments = products.detach(), self.shown.clone()
        parts = [bucket.log_prob(fixed, moments) for bucket in self._buckets]
        spread = (self.count * log_scale).sum()
        total = 0.5 * self._constant - spread.detach() - 0.5 * (fixed @ self.shown) + sum(parts)
        return total, -spread - 0.5 * (products @ moments)


def _shown_moments(families: Families, values: Tensor, used: Tensor) -> Tensor:
    """Returns Σ z_i zᵀ_i over the rows that have the factor, zero where something is hidden."""
    z = ((i, values[used[:, i]][:, members]) for i, members in enumerate(families.members))
    return torch.cat([(rows.T @ rows).flatten() for _, rows in z])


class _LocalPatterns:
    """The distinct local patterns of a table, in buckets, and what their rows show around them.

    A cell of a local pattern has the key (pattern · (d + 1) + node), with d for the constant.
    """

    def __init__(self, families: Families, plan: Plan) -> None:
        self.families, self.keys = families, len(families.members) + 1
        found = replace(plan, pattern=torch.arange(len(plan.observed))).components()
        rows = torch.bincount(plan.pattern, minlength=len(plan.observed))
        self.per_pattern = torch.bincount(found.row, minlength=len(plan.observed))
        """Components of each pattern of the plan; `found` numbers them along these."""
        self.hidden = int((rows[found.row] * found.size).sum())
        """Hidden cells of all rows."""
        which, is_first = _distinct(found, len(families.members))
        count = torch.bincount(which, rows[found.row].double()).long()
        found = found.select(is_first)
        hidden = found.cell_component * self.keys + found.cell_node
        shown = _cells_around(families, found, hidden)
        cells = torch.bincount(shown // self.keys, minlength=len(found))
        width = 2 ** torch.minimum(count, cells).double().log2().ceil().long()
        # From here on, local patterns stand in the order of their buckets.
        order = torch.from_numpy(np.lexsort((width.numpy(), found.size.numpy())))
        rank = torch.argsort(order)
        self.which = rank[which]
        """The local pattern of each component."""
        self.count, self.size = count[order], found.size[order]
        self.width, self.cells = width[order], cells[order]
        self.factors = [(i, rank[of]) for i, of in _by_node(found)]
        self.hidden_keys = (rank[hidden // self.keys] * self.keys + hidden % self.keys).sort()[0]
        self.shown_keys = (rank[shown // self.keys] * self.keys + shown % self.keys).sort()[0]
        self.columns = (self.shown_keys % self.keys).split(self.cells.tolist())
        self.values: list[list[Tensor]] = [[] for _ in self.columns]
        """Of each local pattern: its cells in all rows, or the sum of their squares if shorter."""

    def of_part(self, values: Tensor, plan: Plan) -> dict[int, Tensor]:
        """Returns what some rows show, (n, d + 1) with ones in the last column, by pattern.

        It is the cells themselves, or the sum of their squares where that is shorter.
        """
        found_here: dict[int, Tensor] = {}
        times = self.per_pattern[plan.pattern]
        row = torch.arange(len(plan)).repeat_interleave(times)
        first = (self.per_pattern.cumsum(0) - self.per_pattern)[plan.pattern]
        first -= times.cumsum(0) - times
        which = self.which[torch.arange(len(row)) + first.repeat_interleave(times)]
        found, counts = which.unique(return_counts=True)
        rows = row[torch.argsort(which, stable=True)].split(counts.tolist())
        for pattern, mine in zip(found.tolist(), rows, strict=True):
            shown = values[mine[:, None], self.columns[pattern]].T
            found_here[pattern] = shown if self._is_kept(pattern) else shown @ shown.T
        return found_here

    def add(self, found: dict[int, Tensor]) -> None:
        """Adds what `of_part` has found of some rows."""
        for pattern, shown in found.items():
            so_far = self.values[pattern]
            if self._is_kept(pattern):
                so_far.append(shown)
            else:
                so_far[:] = [sum(so_far, shown)]

    def _is_kept(self, pattern: int) -> bool:
        """Whether the cells of a local pattern are fewer than the sums of their squares."""
        return bool(self.count[pattern] <= self.cells[pattern])

    def _vectors(self, pattern: int) -> Tensor:
        """Returns vectors with the sum of squares of the rows, padded by zeros, (cells, r)."""
        found = torch.cat(self.values[pattern], 1)
        if self.count[pattern] > self.cells[pattern]:
            size, turn = torch.linalg.eigh(found)
            found = turn * size.clamp(min=0.0).sqrt()
        padded = found.new_zeros(len(found), int(self.width[pattern]))
        padded[:, : found.shape[1]] = found
        return padded

    def buckets(self) -> Iterator[_Bucket]:
        """Yields local patterns of the same size and width."""
        kinds = torch.stack([self.size, self.width])
        _, bucket, lengths = kinds.unique_consecutive(
            dim=1, return_inverse=True, return_counts=True
        )
        hidden, shown = self._pairs()
        of_hidden, of_shown = bucket[hidden[-1]], bucket[shown[-1]]
        first, before = 0, torch.zeros(3, 1, dtype=torch.int64)  # places, slots and cells
        for number, length in enumerate(lengths.tolist()):
            mine, m = slice(first, first + length), int(self.size[first])
            vectors = torch.cat([self._vectors(p) for p in range(first, first + length)])
            within, across = hidden[:-1, of_hidden == number], shown[:-1, of_shown == number]
            within[1:] -= before[:1]
            across[1:] -= before[1:]
            yield _Bucket(self.count[mine].double(), vectors, within, across, m)
            before += torch.tensor([[length * m * m], [length * m], [len(vectors)]])
            first += length

    def _pairs(self) -> tuple[Tensor, Tensor]:
        """Returns `_Bucket.hidden` and `_Bucket.shown` of all, with the local pattern last."""
        first_slot = self.size.cumsum(0) - self.size
        first_place = self.size.square().cumsum(0) - self.size.square()
        hidden, shown = [torch.zeros(3, 0).long()], [torch.zeros(4, 0).long()]
        for i, pattern in self.factors:
            members = torch.tensor(self.families.members[i])
            keys = pattern[:, None] * self.keys + members
            slot = torch.searchsorted(self.hidden_keys, keys).clamp(max=len(self.hidden_keys) - 1)
            cell = torch.searchsorted(self.shown_keys, keys)
            is_hidden = self.hidden_keys[slot] == keys
            entry = torch.arange(len(members) ** 2).reshape(len(members), -1)
            entry += self.families.first_pair[i]
            of, j, k = (is_hidden[:, :, None] & is_hidden[:, None, :]).nonzero(as_tuple=True)
            mine = pattern[of]
            row, column = slot[of, j] - first_slot[mine], slot[of, k] - first_slot[mine]
            place = first_place[mine] + row * self.size[mine] + column
            hidden.append(torch.stack([entry[j, k], place, mine]))
            of, j, k = (is_hidden[:, :, None] & ~is_hidden[:, None, :]).nonzero(as_tuple=True)
            shown.append(torch.stack([entry[j, k], slot[of, j], cell[of, k], pattern[of]]))
        return torch.cat(hidden, 1), torch.cat(shown, 1)


def _by_node(components: Components) -> Iterator[tuple[int, Tensor]]:
    """Yields every node that has factors, with their components."""
    node, _, component = components.factors()
    counts = torch.bincount(node).tolist()
    parts = component[torch.argsort(node, stable=True)].split(counts)
    return ((i, part) for i, part in enumerate(parts) if counts[i])


def _cells_around(families: Families, components: Components, hidden: Tensor) -> Tensor:
    """Returns the keys of what factors of components read and rows show, in order."""
    d = len(families.members)
    read = [
        (component[:, None] * (d + 1) + torch.tensor(families.members[i])).flatten()
        for i, component in _by_node(components)
    ]
    keys = torch.cat([hidden[:0], *read]).unique()
    return keys[~torch.isin(keys, hidden)]


def _distinct(components: Components, d: int) -> tuple[Tensor, Tensor]:
    """Returns the local pattern of each component, and which component is the first of each.

    Components are the same where they hide the same nodes and have the same evidence: where sums
    of two random numbers, drawn for each node and each way to be in it, are the same.
    """
    generator = derive_generator(0, "local patterns")
    numbers = torch.randint(2**62, (2, d, 2), generator=generator)
    sums = numbers.new_zeros(len(components), 2)
    sums.index_add_(0, components.cell_component, numbers[0][components.cell_node])
    sums.index_add_(0, components.evidence_component, numbers[1][components.evidence_node])
    keys = sums.numpy().view(np.dtype((np.void, 16))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    is_first = torch.zeros(len(components), dtype=torch.bool)
    is_first[torch.from_numpy(first)] = True
    rank = torch.argsort(torch.argsort(torch.from_numpy(first)))
    return rank[torch.from_numpy(which.ravel())], is_first
