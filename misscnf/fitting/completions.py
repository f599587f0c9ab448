r"""The likelihood near a fit, from a few completions of each row: no integral is solved again.

Draw K completions x^k of every row from the posterior of a fitted model θ̂. For any other θ,

    log p_θ(x_O) / p_θ̂(x_O) = Σ_free log φ_i^θ / φ_i^θ̂ + Σ_c log E_θ̂[ Π_c φ_i^θ / φ_i^θ̂ | x_O ],

and the expectation is an average over the K completions (Geyer and Thompson 1992, one average for
each component c of `elimination`). At θ̂ the weights are equal and the gradient is Fisher's; away
from it they say how the posterior moves. Replicates of a fit, which differ from it by its own
sampling error, are found on this likelihood, all of them at once: every mechanism is evaluated on
the same completions with B sets of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor, nn

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.inference.chains import Chains
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, integrate
from misscnf.mechanisms import Mechanism, standard_normal_log_prob
from misscnf.mechanisms.history import read_parents_by
from misscnf.model import StructuralModel
from misscnf.threads import row_parts, side_by_side, spawn

__all__ = ["Completions", "Families", "Cells", "LogFactor", "LogProb", "complete"]

FEW_ALIKE = 0.1
"""Of completions that agree with another: so few are evaluated again, since finding the factor of
each among the distinct ones costs more."""

LogFactor = Callable[[int, Tensor, Tensor], Tensor | None]
"""(node, own (n,), parents (n, p)) → log φ of B sets of parameters, (B, n); None where the node is
as the fit has it."""


class LogProb(nn.Module):
    """A mechanism whose call is its log-density, as `torch.func` wants it."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__()
        self.mechanism = mechanism

    def forward(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | parents)."""
        return self.mechanism.log_prob(x, parents)


@dataclass(frozen=True)
class Cells:
    """What one node is evaluated at: its free factors, then the distinct ones of components.

    Completions of a row often agree on a family, above all where what is hidden is discrete; each
    of the D distinct ones is evaluated once.
    """

    free: Tensor
    """(f,) the row of each free factor"""
    component: Tensor
    """(e,) the component of each other factor"""
    own: Tensor
    """(f + D,)"""
    parents: Tensor
    """(f + D, p) what the mechanism reads of them"""
    place: Tensor
    """(K, e) where the factor of each completion stands among the f + D"""
    log_factor: Tensor
    """(K, e) what the fit says of them"""
    distinct: bool
    """whether every completion has a factor of its own: then they stand in their order"""

    def of_completions(self, found: Tensor) -> Tensor:
        """Returns what was found at the cells, (B, f + D), for each completion, (B, K, e)."""
        if self.distinct:  # a view: the gradient of an index is slow
            return found[:, len(self.free) :].unflatten(1, self.place.shape)
        return found[:, self.place]

    def shares(self) -> Tensor:
        """Returns how many rows each cell stands for, a completion being the K-th part of one."""
        found = torch.zeros_like(self.own)
        found[: len(self.free)] = 1.0
        place = self.place.flatten()
        return found.index_add(0, place, torch.full_like(self.own[place], 1.0 / len(self.place)))


@dataclass(frozen=True)
class Families:
    """The cells of every node for some rows, n of them, and the row of each component."""

    nodes: list[Cells]
    component_row: Tensor
    """(C,)"""
    rows: int
    """n"""

    def log_prob(self, log_factor: LogFactor) -> Tensor:
        """Returns log p_θ(x_O) − Σ_c log p_θ̂ for B sets of parameters, (B, n)."""
        like = self.nodes[0].log_factor
        answer = like.new_zeros(1, self.rows)
        ratio = like.new_zeros(1, len(like), len(self.component_row))
        for node, cells in enumerate(self.nodes):
            if not len(cells.own):
                continue
            found = log_factor(node, cells.own, cells.parents)
            if found is None:
                continue
            answer, ratio = (x.expand(len(found), *x.shape[1:]) for x in (answer, ratio))
            answer = answer.index_add(1, cells.free, found[:, : len(cells.free)])
            moved = cells.of_completions(found) - cells.log_factor
            ratio = ratio.index_add(2, cells.component, moved)
        inner = torch.logsumexp(ratio, 1) - math.log(len(like))
        return answer.index_add(1, self.component_row, inner)


@dataclass(frozen=True)
class Completions:
    """Completions of rows, and what the fit says of them. N rows, d nodes, K completions."""

    completed: Tensor
    """(K, N, d)"""
    log_factor: Tensor
    """(K, N, d) log φ_i of the fit, where a factor belongs to a component"""
    first: Tensor
    """(K, N, d) the first completion of the row that agrees with this one on the node's family"""
    plan: Plan
    own: Tensor
    """(K, N, d) what each node's factor is asked at: its value, or its noise (`of_noise`)"""

    @staticmethod
    @torch.no_grad()
    def draw(
        model: StructuralModel,
        rows: RowSource,
        count: int,
        generator: Generator,
        effort: Effort | None = None,
        modes: Tensor | None = None,
        chains: Chains | None = None,
    ) -> Completions:
        """Draws completions from the posterior of a fitted model, spread evenly over it.

        Arguments are those of `complete`.
        """
        plan = Plan.of(model.graph, rows)
        completed = complete(model, rows, plan, count, generator, effort, modes, chains)
        return Completions(completed, *_factors(model, completed, plan), plan, completed)

    def __len__(self) -> int:
        return self.completed.shape[1]

    @property
    def count(self) -> int:
        """Completions of each row, K."""
        return len(self.completed)

    def to(self, dtype: torch.dtype) -> Completions:
        """Returns the same in another precision."""
        completed, log_factor = self.completed.to(dtype), self.log_factor.to(dtype)
        own = completed if self.own is self.completed else self.own.to(dtype)
        return replace(self, completed=completed, log_factor=log_factor, own=own)

    @torch.no_grad()
    def of_noise(self, model: StructuralModel, nodes: Collection[int]) -> Completions:
        """Returns the same with the noise of some nodes for their values; its law is N(0, 1).

        Given its parents, a node and its noise are the same news, and ratios of densities too.

        Arguments:
            model: The fit.
            nodes: Continuous nodes; factors of others must not be asked for.
        """
        noise, log_factor = self.completed.clone(), self.log_factor.clone()
        for node in nodes:
            parents = model.parents_of(self.completed, node)
            u = model.mechanism(node).abduct(self.completed[..., node], parents)
            noise[..., node], log_factor[..., node] = u, standard_normal_log_prob(u)
        return replace(self, own=noise, log_factor=log_factor)

    def families(self, rows: Tensor, nodes: Collection[int] | None = None) -> Families:
        """Gathers what nodes are evaluated at for some rows; nothing of nodes not asked for."""
        plan = self.plan.select(rows)
        components = plan.components()
        drawn = _by_node(len(plan.graph), *components.factors())
        free = _by_node(len(plan.graph), *plan.free_factors())
        cells = []
        for node, ((free_row,), (drawn_row, component)) in enumerate(
            zip(free, drawn, strict=True)
        ):
            if nodes is not None and node not in nodes:
                free_row, drawn_row, component = free_row[:0], drawn_row[:0], component[:0]
            cells.append(self._cells(node, rows, free_row, rows[drawn_row], component))
        return Families(cells, components.row, len(rows))

    def _cells(
        self, node: int, rows: Tensor, free: Tensor, drawn: Tensor, component: Tensor
    ) -> Cells:
        columns = torch.tensor(self.plan.graph.parents[node], dtype=torch.int64)
        first, own_place = self.first[:, drawn, node].long(), torch.arange(self.count)[:, None]
        if int((first != own_place).sum()) < FEW_ALIKE * first.numel():
            first = own_place.expand_as(first)
        distinct = first == own_place
        number = distinct.flatten().cumsum(0).reshape(distinct.shape) - 1 + len(free)
        completion, which = distinct.nonzero(as_tuple=True)
        seen, drawn_row = rows[free], drawn[which]
        own = torch.cat([self.own[0][seen, node], self.own[completion, drawn_row, node]])
        of_seen = self.completed[0][seen[:, None], columns]
        of_drawn = self.completed[completion[:, None], drawn_row[:, None], columns]
        reading = self.plan.graph.readings.get(node)
        parents = read_parents_by(reading, torch.cat([of_seen, of_drawn]))
        log_factor = self.log_factor[:, drawn, node]
        place, alone = number.gather(0, first), bool(distinct.all())
        return Cells(free, component, own, parents, place, log_factor, alone)

    def log_prob(self, rows: Tensor, log_factor: LogFactor) -> Tensor:
        """Returns log p_θ(x_O) − Σ_c log p_θ̂ of the rows for B sets of parameters, (B, n)."""
        return self.families(rows).log_prob(log_factor)


@torch.no_grad()
def complete(
    model: StructuralModel,
    rows: RowSource,
    plan: Plan,
    count: int,
    generator: Generator,
    effort: Effort | None = None,
    modes: Tensor | None = None,
    chains: Chains | None = None,
) -> Tensor:
    """Returns completions of rows from the posterior of a fitted model, (K, N, d).

    Arguments:
        model: The fit.
        rows: The rows, N of them.
        plan: What they hide.
        count: Completions of each row, K.
        generator: Where randomness comes from.
        effort: How hard to work on posteriors that have no closed form.
        modes: Where those of earlier calls are remembered, (N, S, d); see `integrate`.
        chains: Chains of the rows. What they know and can move comes from them, however much of
            it is hidden together; the rest is drawn here, and written to them.
    """
    effort = effort or Efforts().completions
    # Node by node in memory: whoever asks for factors asks for those of one node.
    completed = torch.empty(rows.columns, count, len(rows), dtype=torch.float64)
    completed = completed.permute(1, 2, 0)
    parts = row_parts(len(rows), effort.rows_at_once)

    def integrate_part(part: tuple[Tensor, Generator]) -> None:
        mine, its_generator = part
        values = rows.take(mine).values
        completed[:, mine] = values
        components = plan.select(mine).components()
        known, state = None if modes is None else modes[mine], None
        if chains is not None:
            state = chains.one(mine)
            components = components.select(~chains.moves(model, components, mine))
        about = (components, effort, its_generator, state, known)
        for integral in integrate(model, values, *about):
            c = integral.components
            drawn = integral.draw(count, its_generator, even=True)
            completed[:, mine[c.cell_row], c.cell_node] = drawn.T.to(completed)
        if modes is not None and known is not None:
            modes[mine] = known

    side_by_side(integrate_part, list(zip(parts, spawn(generator, len(parts)), strict=True)))
    if chains is not None:
        chains.complete(model, plan, completed, generator)
    return completed


def _by_node(nodes: int, node: Tensor, *columns: Tensor) -> list[list[Tensor]]:
    """Returns the columns of what belongs to each node, in their order."""
    order, counts = torch.argsort(node, stable=True), torch.bincount(node, minlength=nodes)
    parts = [column[order].split(counts.tolist()) for column in columns]
    return [list(mine) for mine in zip(*parts, strict=True)]


def _factors(model: StructuralModel, completed: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """Returns log φ of the factors of components, and which completions agree on them.

    Each is (K, N, d): zero, and the completion itself, where a factor belongs to no component.
    """
    log_factor = torch.zeros_like(completed)
    first = torch.arange(len(completed), dtype=torch.int16)[:, None, None]
    first = first.expand(completed.shape).clone()
    node, row, _ = plan.components().factors()
    for i, (rows,) in enumerate(_by_node(len(plan.graph), node, row)):
        own, parents = model.family_of(completed, i, rows)
        log_factor[:, rows, i] = model.mechanism(i).log_prob(own, parents)
        first[:, rows, i] = _first_alike(torch.cat([own[..., None], parents], -1))
    return log_factor, first


def _first_alike(family: Tensor) -> Tensor:
    """Returns the first completion that agrees with each on a family (K, n, 1 + p), (K, n).

    Those that agree have the same sum of their bits times odd numbers, and are found by sorting;
    of those that have the same sum by chance, each counts as its own.
    """
    count, _, size = family.shape
    odd = torch.randint(2**62, (size,), generator=derive_generator(0, "alike")) * 2 + 1
    key = (family.view(torch.int64) * odd).sum(-1).T  # (n, K)
    key, order = key.sort(stable=True, dim=1)
    own = torch.arange(count).expand(key.shape)
    is_new = torch.cat([torch.ones_like(key[:, :1]), key[:, 1:] != key[:, :-1]], 1).bool()
    start = torch.where(is_new, own, 0).cummax(1).values
    first = torch.empty_like(order).scatter_(1, order, order.gather(1, start)).T
    index = first[..., None].expand(family.shape)
    alike = (family.gather(0, index) == family).all(-1)
    return torch.where(alike, first, own.T).to(torch.int16)
