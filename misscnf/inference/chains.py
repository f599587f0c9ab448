r"""Markov chains of completions, for rows that hide much together.

Given all other cells of its row, a hidden cell has the law

    p(x_i | rest) ∝ φ_i(x_i; x_pa(i)) Π_{c ∈ ch(i)} φ_c(x_c; x_pa(c)),

over the children that are not barren: its Markov blanket. A sweep visits the nodes in turn, and
moves one node in all rows that hide it, in all chains at once. So its cost follows edges and
holes, whatever is hidden together. Two moves take turns, each with the rule of Metropolis and
Hastings:

fresh   a draw from φ_i, which can reach another mode; accepted by its children alone;
step    a normal step around the value, as wide as makes about 44 in 100 be accepted (Gelman,
        Roberts and Gilks 1996), which gets on where children say much.

Of a node with normal noise the mean given its parents is kept, which a move of the node itself
leaves as it is: then only its children are evaluated.

Every row has K chains. They go on from where an earlier sweep left them, also when the model has
moved since: a fit that completes the same rows again and again needs no integral for that.
A chain knows nothing of its own mass, so that likelihoods are the business of `integrals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from misscnf.draws import normal_numbers, uniform_numbers
from misscnf.inference.elimination import Components, Plan
from misscnf.inference.integrals.closed_form import linear_gaussian
from misscnf.mechanisms import Mechanism, standard_normal_log_prob
from misscnf.model import StructuralModel

__all__ = ["Blankets", "ChainRules", "Chains", "Factor", "can_move"]


@dataclass(frozen=True)
class ChainRules:
    """How chains move."""

    count: int = 4
    """Chains of each row. What is estimated averages over all of them and over many draws, so that
    few do."""
    sweeps: int = 2
    """Sweeps before each draw: one of each kind of move."""
    accepted: float = 0.44
    """Of the steps, where a chain in one dimension gets on fastest; their width follows it."""
    first_width: float = 0.5
    """Of a step, in standard deviations of a column."""
    learning: float = 10.0
    """Steps after which a width moves half as fast: in the end it stays."""


@dataclass
class Chains:
    """K completions of each of N rows, which sweeps move. d nodes."""

    state: Tensor
    """(d, K, N) node by node in memory; nan where a hidden cell is not known yet"""
    log_width: Tensor
    """(d,) of the steps"""
    rules: ChainRules
    sweeps: int = 0
    """made so far"""

    @staticmethod
    def of(rows: int, nodes: int, rules: ChainRules) -> Chains:
        """Returns chains of so many rows that know nothing yet."""
        state = torch.full((nodes, rules.count, rows), torch.nan, dtype=torch.float64)
        log_width = torch.full((nodes,), math.log(rules.first_width), dtype=torch.float64)
        return Chains(state, log_width, rules)

    @property
    def count(self) -> int:
        """Chains of each row, K."""
        return self.state.shape[1]

    def moves(self, model: StructuralModel, components: Components, rows: Tensor) -> Tensor:
        """Says which components of some rows (n,) have a state and can be moved, (C,)."""
        found = can_move(model, components)
        unknown = self.state[components.cell_node, 0, rows[components.cell_row]].isnan()
        found[components.cell_component[unknown]] = False
        return found

    def one(self, rows: Tensor) -> Tensor:
        """Returns the first completion of some rows, (n, d)."""
        return self.state[:, 0, rows].T

    @torch.no_grad()
    def complete(
        self, model: StructuralModel, plan: Plan, completed: Tensor, generator: Generator
    ) -> None:
        """Moves what can be moved, and writes it into completions (K', N, d); takes the rest.

        Each of the K' completions is a state of one chain; where more are asked for than there are
        chains, they are moved again before each is asked once more.
        """
        components = plan.components()
        moved = self.moves(model, components, torch.arange(len(plan)))
        kept = torch.ones(len(self.state), len(plan), dtype=torch.bool)
        mine = components.select(moved)
        kept[mine.cell_node, mine.cell_row] = False
        # Spread evenly, completions are in order: only one by chance has the law of a draw.
        order = torch.randperm(len(completed), generator=generator)
        for chain in range(self.count):
            drawn = completed[order[chain % len(order)]].T
            self.state[:, chain] = torch.where(kept, drawn, self.state[:, chain])
        if not len(mine):
            return
        blankets = Blankets.of(plan, mine)
        at = (mine.cell_row, mine.cell_node)
        for number in range(len(completed)):
            if number % self.count == 0:
                self.move(model, blankets, self.rules.sweeps, generator)
            completed[number][at] = self.state[mine.cell_node, number % self.count, mine.cell_row]

    @torch.no_grad()
    def move(
        self, model: StructuralModel, blankets: Blankets, sweeps: int, generator: Generator
    ) -> None:
        """Moves the cells that are asked for, so many sweeps."""
        factors = blankets.factors(model, self.state)
        for _ in range(sweeps):
            for node in blankets.nodes:
                self._move(blankets, node, factors, generator)
            self.sweeps += 1

    def _move(
        self, blankets: Blankets, node: int, factors: dict[int, Factor], generator: Generator
    ) -> None:
        """Moves one node in all rows that hide it, given everything else."""
        factor, rows, state = factors[node], blankets.hidden[node], self.state
        own, kept = state[node][:, rows], factor.kept[:, rows]
        noise, fresh = normal_numbers(own.shape, generator, own), self.sweeps % 2 == 0
        # Its own mean is known: parents are gathered only where there is no such thing.
        parents = None if factor.normal else blankets.parents(state, node, rows)
        if fresh:
            proposed = factor.generate(noise, kept, parents)
        else:
            proposed = own + noise * torch.exp(self.log_width[node])
        after = kept if parents is None else factor.look(proposed, parents)
        ratio = torch.zeros_like(own)
        if not fresh:
            ratio = factor.log_prob(proposed, after) - factor.log_prob(own, kept)
        moved: list[tuple[Factor, Tensor, Tensor, Tensor, Tensor]] = []
        for child, among in blankets.children[node]:
            its, place = rows[among], blankets.plan.graph.parents[child].index(node)
            given = blankets.parents(state, child, its)
            given[..., place] = proposed[:, among]
            of, value = factors[child], state[child][:, its]
            before, found = of.kept[:, its], of.look(value, given)
            ratio[:, among] += of.log_prob(value, found) - of.log_prob(value, before)
            moved.append((of, among, its, before, found))
        accepted = uniform_numbers(own.shape, generator, own).log() < ratio
        state[node][:, rows] = torch.where(accepted, proposed, own)
        if parents is not None:
            factor.kept[:, rows] = torch.where(accepted, after, kept)
        for of, among, its, before, found in moved:
            of.kept[:, its] = torch.where(accepted[:, among], found, before)
        if not fresh and accepted.numel():
            speed = self.rules.learning / (self.rules.learning + 0.5 * self.sweeps)
            self.log_width[node] += speed * (accepted.double().mean() - self.rules.accepted)


@dataclass
class Factor:
    """The factor φ of a node at the state of all chains."""

    law: Mechanism
    log_scale: Tensor | None
    """where the noise is normal, and its scale one number: that, (1,)"""
    kept: Tensor
    """(K, N) the mean given the parents then, else log φ; zero where no move asks for it"""

    @staticmethod
    def of(law: Mechanism, like: Tensor) -> Factor:
        """Returns the factor of a law of which nothing is kept yet."""
        mean, log_scale = law.linear_mean(), None
        if mean is not None and mean.constant_scale:
            log_scale = mean.log_scale(like.new_zeros(1, 0))
        return Factor(law, log_scale, torch.zeros_like(like))

    @property
    def normal(self) -> bool:
        """Whether the mean is kept."""
        return self.log_scale is not None

    def look(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns what is kept of a value and its parents."""
        if self.normal:
            return self.law.generate(torch.zeros_like(x), parents)
        return self.law.log_prob(x, parents)

    def log_prob(self, x: Tensor, kept: Tensor) -> Tensor:
        """Returns log φ."""
        if self.log_scale is None:
            return kept
        left = (x - kept) * torch.exp(-self.log_scale)
        return standard_normal_log_prob(left) - self.log_scale

    def generate(self, noise: Tensor, kept: Tensor, parents: Tensor | None) -> Tensor:
        """Returns the value that the noise makes, given the parents or what is kept of them."""
        if parents is not None:
            return self.law.generate(noise, parents)
        assert self.log_scale is not None
        return kept + torch.exp(self.log_scale) * noise


@dataclass(frozen=True)
class Blankets:
    """The hidden cells that chains move, by node, and where their children have a factor."""

    plan: Plan
    hidden: dict[int, Tensor]
    """by node: (n,) the rows that hide it"""
    children: dict[int, list[tuple[int, Tensor]]] = field(default_factory=dict)
    """by node: its children, and (n',) which of these rows have a factor of that child"""

    @staticmethod
    def of(plan: Plan, components: Components) -> Blankets:
        """Returns those of some components of a plan."""
        count = torch.bincount(components.cell_node, minlength=len(plan.graph)).tolist()
        hidden = {
            node: rows for node, rows in enumerate(components.cell_row.split(count)) if len(rows)
        }
        found = Blankets(plan, hidden)
        for node, rows in hidden.items():
            found.children[node] = [
                (child, its)
                for child, parents in enumerate(plan.graph.parents)
                if node in parents
                and len(its := (plan.label[plan.pattern[rows], child] >= 0).nonzero()[:, 0])
            ]
        return found

    @property
    def nodes(self) -> list[int]:
        """The nodes that are hidden somewhere, in graph order."""
        return list(self.hidden)

    def parents(self, state: Tensor, node: int, rows: Tensor) -> Tensor:
        """Returns the parents of a node in some rows (n,), (K, n, p)."""
        columns = [state[j][:, rows] for j in self.plan.graph.parents[node]]
        return (
            torch.stack(columns, -1) if columns else state.new_zeros(*state[0, :, rows].shape, 0)
        )

    def factors(self, model: StructuralModel, state: Tensor) -> dict[int, Factor]:
        """Returns the factor of every node whose factor a move touches."""
        touched = set(self.hidden).union(
            child for children in self.children.values() for child, _ in children
        )
        found = {}
        for node in touched:
            rows = (self.plan.label[self.plan.pattern, node] >= 0).nonzero()[:, 0]
            factor = found[node] = Factor.of(model.mechanism(node), state[node])
            parents = self.parents(state, node, rows)
            factor.kept[:, rows] = factor.look(state[node][:, rows], parents)
        return found


def can_move(model: StructuralModel, components: Components) -> Tensor:
    """Says which components chains can move, (C,).

    Those that hide numbers alone, whose noise is one number, and are not linear-Gaussian: these
    have a closed form.
    """
    found = ~linear_gaussian(model, components)
    single = torch.tensor(model.invertible)[components.cell_node]
    found[components.cell_component[~single]] = False
    return found
