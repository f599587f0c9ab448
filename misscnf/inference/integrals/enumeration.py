r"""Enumeration of the joint states of hidden discrete nodes.

With the discrete nodes of a component held at a joint state s, what is left hidden is continuous
and falls apart into smaller components a, each integrated by whatever way suits it:

    E_u [e] = Σ_s  Π_{free factors i} φ_i(s) · Π_a E_a [ evidence | s ].

Where nothing continuous is hidden this is an exact sum. Each of these *terms* depends on a few of
the discrete nodes only, its scope, and is tabulated once for each state of its scope; a joint
state s then looks its terms up. Components with too many states, or with a count below a hidden
continuous parent, are drawn instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components, Plan
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.integral import Integral
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.states import Tables, count_states, hidden_nodes
from misscnf.model import StructuralModel

__all__ = ["EnumeratedIntegral", "enumeration", "factors_log_prob", "hides_discrete"]

Integrate = Callable[[Problem, Components], Iterator[Integral]]
"""A way to integrate components."""


def hides_discrete(model: StructuralModel, components: Components) -> Tensor:
    """Says which components hide a discrete node, (C,)."""
    discrete = torch.tensor(model.discrete, device=components.row.device)
    result = torch.zeros_like(components.row, dtype=torch.bool)
    result[components.cell_component[discrete[components.cell_node]]] = True
    return result


@dataclass(frozen=True)
class _Terms:
    """The terms of all components, in order of components. F terms."""

    component: Tensor
    """(F,)"""
    scope: Tensor
    """(F, d) the nodes whose values a term depends on, apart from what it integrates over"""
    factors: Tensor
    """(F, d) the factors in a term"""
    continuous: Tensor
    """(F, d) the continuous cells that a term integrates over"""

    def select(self, keep: Tensor) -> _Terms:
        """Returns the terms of the components where keep (C,) is True, renumbered."""
        mine, number = keep[self.component], keep.cumsum(0) - 1
        rest = (self.scope[mine], self.factors[mine], self.continuous[mine])
        return _Terms(number[self.component[mine]], *rest)


@dataclass(frozen=True)
class EnumeratedIntegral:
    """Components with all their joint states. S joint states, T entries of tables, P lookups."""

    components: Components
    joint: Tables
    """a table for each component, over its discrete cells: its entries are the joint states"""
    entry: Tensor
    """(P,) the entries that joint states look up"""
    joint_state: Tensor
    """(P,) which joint state looks"""
    rows: Tensor
    """(T, d) the values at each entry"""
    free: Tensor
    """(T, d) the factors that are evaluated there"""
    log_term: Tensor
    """(T,)"""
    integrals: list[Integral]
    """the integrals in the terms; their rows are entries"""

    @property
    def log_weight(self) -> Tensor:
        """(S,) log of what each joint state adds to the integral."""
        total = self.log_term.new_zeros(len(self.joint.table))
        return total.index_add(0, self.joint_state, self.log_term[self.entry])

    def log_integral(self) -> Tensor:
        """Returns the log of the sum over joint states, (C,)."""
        log_weight = self.log_weight
        top = log_weight.new_full((len(self.components),), -math.inf)
        top = top.scatter_reduce(0, self.joint.table, log_weight.detach(), "amax")
        top = torch.where(top.isfinite(), top, 0.0)
        share = torch.exp(log_weight - top[self.joint.table])
        return top + torch.log(self._per_component(share))

    def _per_component(self, of_joint: Tensor) -> Tensor:
        total = of_joint.new_zeros(len(self.components))
        return total.index_add(0, self.joint.table, of_joint)

    def shares(self) -> Tensor:
        """Returns the posterior probability of each joint state, (S,); equal if all are zero."""
        total = self.log_integral()[self.joint.table]
        even = (1.0 / self.joint.size)[self.joint.table].to(total)
        return torch.where(total.isfinite(), torch.exp(self.log_weight - total), even)

    def _entry_shares(self) -> Tensor:
        """Returns the posterior probability of each entry's state of its scope, (T,)."""
        shares = self.shares()
        return torch.zeros_like(self.log_term).index_add(0, self.entry, shares[self.joint_state])

    def standard_error(self) -> Tensor:
        """Returns the standard error, (C,); zero where the sum is exact."""
        variance = torch.zeros_like(self.log_term)
        for integral in self.integrals:
            error = integral.standard_error().to(variance)
            variance = variance.index_add(0, integral.components.row, error**2)
        # An entry moves all joint states that look it up; one of no weight moves nothing.
        share = self._entry_shares()
        parts = torch.where(share > 0, share**2 * variance, 0.0)
        total = parts.new_zeros(len(self.components))
        return total.index_add(0, self._component_of_entry(), parts).sqrt()

    def _component_of_entry(self) -> Tensor:
        component = torch.zeros_like(self.log_term, dtype=torch.int64)
        component[self.entry] = self.joint.table[self.joint_state]
        return component

    def effective_size(self) -> Tensor:
        """Returns the effective size averaged over joint states, (C,); infinite where exact."""
        least = torch.full_like(self.log_term, math.inf)
        for integral in self.integrals:
            found = integral.effective_size().to(least)
            least = least.scatter_reduce(0, integral.components.row, found, "amin")
        of_joint = torch.full_like(self.log_weight, math.inf)
        of_joint = of_joint.scatter_reduce(0, self.joint_state, least[self.entry], "amin")
        return 1.0 / self._per_component(self.shares() / of_joint)

    @property
    def below_target(self) -> int:
        """How many components got fewer effective draws than asked for, at most."""
        return min(len(self.components), sum(integral.below_target for integral in self.integrals))

    def cut_off(self, model: StructuralModel, share: float) -> Tensor:
        """Says which counts have more than a share of the posterior at their last state, (C, d).

        Counts are cut by their prior; evidence may want larger ones.
        """
        cut = torch.zeros_like(self.joint.states, dtype=torch.bool)
        ending = self.joint.digits == self.joint.states[self.joint.table] - 1
        shares = self.shares()
        for node in range(len(model.graph)):
            bounded = model.mechanism(node).domain.states is not None
            if not bounded and (self.joint.states[:, node] > 1).any():
                at_end = self._per_component(torch.where(ending[:, node], shares, 0.0))
                cut[:, node] = (at_end > share) & (self.joint.states[:, node] > 1)
        # Where nothing has any weight, more states would not find it either.
        return cut & self.log_integral().isfinite()[:, None]

    def draw(self, count: int, generator: Generator, *, even: bool = False) -> Tensor:
        """Draws a joint state by its probability, then what it leaves hidden, (H, count)."""
        c = self.components
        joint_state = self._draw_joint(count, generator, even=even)[c.cell_component]
        values = self.joint.digits[joint_state, c.cell_node[:, None]].to(self.rows)
        if not self.integrals:
            return values
        drawn, place = self._draw_inside(count, generator, even=even)
        where = place[joint_state, c.cell_node[:, None]]
        return torch.where(where >= 0, drawn.gather(0, where.clamp(min=0)), values)

    def _draw_joint(self, count: int, generator: Generator, *, even: bool) -> Tensor:
        """Returns joint states drawn by their probabilities, (C, count)."""
        shares = self.shares().double()
        place = uniform_numbers((len(self.components), count), generator, shares)
        if even:
            place = (place + torch.arange(count, device=place.device)) / count
        # The shares of a component sum to one, so that its joint states end at its number plus 1.
        number = torch.arange(len(self.components), device=place.device)[:, None]
        chosen = torch.searchsorted(shares.cumsum(0), place + number)
        first = self.joint.offset[:, None]
        last = first + self.joint.size[:, None] - 1
        return torch.maximum(torch.minimum(chosen, last), first)

    def _draw_inside(
        self, count: int, generator: Generator, *, even: bool
    ) -> tuple[Tensor, Tensor]:
        """Returns draws of all continuous cells (Q, count), and where a joint state finds them.

        (S, d) is the place of a node's draws among them, −1 where it has none.
        """
        at = torch.full(self.rows.shape, -1, dtype=torch.int64, device=self.rows.device)
        drawn, start = [], 0
        for integral in self.integrals:
            inner, end = integral.components, start + len(integral.components.cell_node)
            at[inner.cell_row, inner.cell_node] = torch.arange(start, end, device=at.device)
            some = integral.draw(count, generator, even=even).to(self.rows)
            if even:  # shuffled, since a joint state takes only its own share of the draws
                order = uniform_numbers((len(inner), count), generator, self.rows).argsort(1)
                some = some.gather(1, order[inner.cell_component])
            drawn.append(some)
            start = end
        place = torch.full_like(at[:1], -1).repeat(len(self.joint.table), 1)
        index = self.joint_state[:, None].expand(-1, at.shape[1])
        return torch.cat(drawn), place.scatter_reduce(0, index, at[self.entry], "amax")

    def expected_log_factors(
        self, model: StructuralModel, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Returns Σ_c weight_c E[Σ log φ_i | x_O], differentiable in the parameters."""
        share = self._entry_shares().detach().to(weight) * weight[self._component_of_entry()]
        log_prob = factors_log_prob(model, self.rows, self.free)
        total = torch.where(share > 0, share * log_prob, 0.0).sum()
        for integral in self.integrals:
            inner = share[integral.components.row]
            total = total + integral.expected_log_factors(model, self.rows, inner)
        return total


def enumeration(
    problem: Problem, components: Components, integrate: Integrate
) -> Iterator[Integral]:
    """Yields the integrals of components that hide discrete nodes, each component once.

    Arguments:
        problem: The model, the table and the effort.
        components: What is hidden, and its evidence.
        integrate: How to integrate what a joint state leaves hidden, and components with too many
            joint states.
    """
    states, terms = count_states(problem, components), _terms(problem.model, components)
    yield from _Sum(problem, integrate)(components, states, terms)


@dataclass(frozen=True)
class _Sum:
    """What all sums over joint states share."""

    problem: Problem
    integrate: Integrate

    def __call__(
        self, components: Components, states: Tensor, terms: _Terms
    ) -> Iterator[Integral]:
        """Yields the integrals of components with so many states, or with more if needed."""
        model, effort = self.problem.model, self.problem.effort
        few = _few_enough(states, terms, effort)
        if not few.all():
            yield from self.integrate(self.problem, components.select(~few))
        if not few.any():
            return
        components, states, terms = components.select(few), states[few], terms.select(few)
        part = _memory_parts(states, terms, effort)
        for number in part.unique().tolist():
            mine = part == number
            chosen, some = components.select(mine), terms.select(mine)
            integral = self._integral(chosen, Tables(states[mine]), some)
            cut = integral.cut_off(model, effort.enumeration.worth_keeping * effort.tail)
            if cut.any():
                yield from self(chosen, torch.where(cut, 2 * states[mine], states[mine]), some)
            else:
                yield integral

    def _integral(
        self, components: Components, joint: Tables, terms: _Terms
    ) -> EnumeratedIntegral:
        tables = Tables(torch.where(terms.scope, joint.states[terms.component], 1))
        rows = tables.fill(self.problem.values[components.row[terms.component]])
        integrated = terms.continuous.any(1)[tables.table]
        free = terms.factors[tables.table] & ~integrated[:, None]
        log_term = factors_log_prob(self.problem.model, rows, free)
        integrals: list[Integral] = []
        if integrated.any():
            inner = replace(self.problem, values=rows)
            integrals = list(self.integrate(inner, _inner_components(terms, tables)))
            for integral in integrals:
                found = integral.log_integral().to(log_term)
                log_term = log_term.index_add(0, integral.components.row, found)
        lookups = _lookups(joint, tables, terms.component)
        return EnumeratedIntegral(components, joint, *lookups, rows, free, log_term, integrals)


def _terms(model: StructuralModel, components: Components) -> _Terms:
    """Splits components into their terms, once the discrete cells are held."""
    hides = hidden_nodes(model, components)
    factors = hides.clone()
    factors[components.evidence_component, components.evidence_node] = True
    discrete = torch.tensor(model.discrete, device=hides.device)
    continuous = hides & ~discrete
    families = torch.eye(len(model.graph), dtype=torch.bool, device=hides.device)
    for i, parents in enumerate(model.graph.parents):
        families[i, list(parents)] = True
    # A joint state knows all that the factors need, but for the continuous cells.
    needed = (factors.double() @ families.double()) > 0
    plan = Plan.make(model.graph, needed & ~continuous)
    label, free = plan.label[plan.pattern].long(), plan.free[plan.pattern] & factors
    component, node = free.nonzero(as_tuple=True)
    single = torch.eye(len(model.graph), dtype=torch.bool, device=hides.device)[node]
    parts = [(component, single, torch.zeros_like(single))]
    for first in label[continuous].unique().tolist():
        inside = (label == first) & factors
        of = inside.any(1).nonzero()[:, 0]
        parts.append((of, inside[of], (inside & continuous)[of]))
    component, inside, integrated = (torch.cat(column) for column in zip(*parts, strict=True))
    order = torch.argsort(component, stable=True)
    component, inside, integrated = component[order], inside[order], integrated[order]
    scope = ((inside.double() @ families.double()) > 0) & (hides & discrete)[component]
    return _Terms(component, scope, inside, integrated)


def _few_enough(states: Tensor, terms: _Terms, effort: Effort) -> Tensor:
    """Says which components have few enough states to sum over, (C,)."""
    rules = effort.enumeration
    log_states = states.double().log()
    few = log_states.sum(1) <= math.log(rules.most_states) + 1e-9
    log_size = torch.where(terms.scope, log_states[terms.component], 0.0).sum(1)
    many = terms.continuous.any(1) & (log_size > math.log(rules.most_integrals) + 1e-9)
    few[terms.component[many]] = False
    return few


def _memory_parts(states: Tensor, terms: _Terms, effort: Effort) -> Tensor:
    """Numbers the components by parts whose lookups fit into memory, (C,)."""
    count = torch.bincount(terms.component, minlength=len(states))
    cells = states.prod(1) * count * states.shape[1]
    return ((cells.cumsum(0) - cells) // effort.cells_at_once).unique(return_inverse=True)[1]


def _inner_components(terms: _Terms, tables: Tables) -> Components:
    """Returns what the terms integrate over: a component for each entry of such a term."""
    hidden = terms.continuous[tables.table]
    row = hidden.any(1).nonzero()[:, 0]
    number = torch.full((len(hidden),), -1, dtype=torch.int64, device=hidden.device)
    number[row] = torch.arange(len(row), device=row.device)
    evidence = terms.factors[tables.table] & ~hidden & (number >= 0)[:, None]
    cell_node, cell_row = hidden.T.nonzero(as_tuple=True)
    evidence_node, evidence_row = evidence.T.nonzero(as_tuple=True)
    whole = row, hidden[row].int().argmax(1), hidden[row].sum(1)
    cells = cell_node, cell_row, number[cell_row]
    return Components(*whole, *cells, evidence_node, evidence_row, number[evidence_row])


def _lookups(joint: Tables, tables: Tables, component: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the entry (P,) and the joint state (P,) of every term of every joint state."""
    count = torch.bincount(component, minlength=len(joint.size))
    first = count.cumsum(0) - count
    owner = joint.table
    joint_state = torch.arange(len(owner), device=owner.device).repeat_interleave(count[owner])
    start = (count[owner].cumsum(0) - count[owner])[joint_state]
    place = torch.arange(len(joint_state), device=owner.device) - start
    table = first[owner[joint_state]] + place
    return tables.find(table, joint, joint_state), joint_state


def factors_log_prob(model: StructuralModel, rows: Tensor, free: Tensor) -> Tensor:
    """Returns the sum of the marked factors (T, d) of each row, (T,)."""
    total = rows.new_zeros(len(rows))
    for node in free.any(0).nonzero()[:, 0].tolist():
        mine = free[:, node].nonzero()[:, 0]
        factor = model.mechanism(node).log_prob(*model.family_of(rows, node, mine))
        total = total.index_add(0, mine, factor)
    return total
