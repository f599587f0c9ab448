r"""Joint states of discrete nodes, numbered by mixed radix.

A table over nodes with k_1, k_2, … states has Π k_j entries; entry t holds node j at the digit

    digit_j = (t // stride_j) mod k_j,      stride_j = k_1 ⋯ k_{j−1}.

Many tables stand one after another in flat arrays, each over the nodes of its own scope, so that
thousands of components with different holes are worked on at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.problem import Problem
from misscnf.model import StructuralModel

__all__ = ["Tables", "count_states", "hidden_nodes"]


@dataclass(frozen=True)
class Tables:
    """F tables with T entries in all."""

    states: Tensor
    """(F, d) how many states each node has in a table; 1 where it is not in the scope"""

    @cached_property
    def size(self) -> Tensor:
        """(F,) entries of each table."""
        return self.states.prod(1)

    @cached_property
    def stride(self) -> Tensor:
        """(F, d) how far apart two states of a node are."""
        return self.states.cumprod(1) // self.states

    @cached_property
    def offset(self) -> Tensor:
        """(F,) where each table begins."""
        return self.size.cumsum(0) - self.size

    @cached_property
    def table(self) -> Tensor:
        """(T,) the table of each entry."""
        number = torch.arange(len(self.size), device=self.size.device)
        return number.repeat_interleave(self.size)

    @cached_property
    def digits(self) -> Tensor:
        """(T, d) the state of each node in each entry."""
        entry = torch.arange(len(self.table), device=self.table.device) - self.offset[self.table]
        return (entry[:, None] // self.stride[self.table]) % self.states[self.table]

    def fill(self, rows: Tensor) -> Tensor:
        """Returns a row for each entry: the values of its table (F, d), its scope filled in."""
        rows = rows[self.table]
        return torch.where((self.states > 1)[self.table], self.digits.to(rows), rows)

    def find(self, table: Tensor, other: Tables, entry: Tensor) -> Tensor:
        """Returns the entries of tables (n,) that agree with entries (n,) of other tables."""
        found = self.offset[table]
        scope = self.states > 1
        for node in scope.any(0).nonzero()[:, 0].tolist():
            step = torch.where(scope[:, node], self.stride[:, node], 0)
            found = found + other.digits[:, node][entry] * step[table]
        return found


def hidden_nodes(model: StructuralModel, components: Components) -> Tensor:
    """Returns which nodes each component hides, (C, d)."""
    size = (len(components), len(model.graph))
    hides = torch.zeros(size, dtype=torch.bool, device=components.row.device)
    hides[components.cell_component, components.cell_node] = True
    return hides


def count_states(problem: Problem, components: Components) -> Tensor:
    """Returns how many states each hidden discrete node has, 1 for other nodes, (C, d).

    A node without a largest state, a count, is cut where its law has less than `effort.tail` left
    at every state of its parents; below a hidden continuous parent there is no such end, and it
    gets more states than are ever summed.
    """
    model, effort, most = problem.model, problem.effort, problem.effort.enumeration.most_states
    hides = hidden_nodes(model, components)
    states = torch.ones_like(hides, dtype=torch.int64)
    for node, parents in enumerate(model.graph.parents):
        domain = model.mechanism(node).domain
        if not domain.discrete:
            continue
        here = hides[:, node]
        if domain.states is not None:
            states[here, node] = domain.states
        elif here.any():
            continuous = [j for j in parents if not model.discrete[j]]
            many = hides[:, continuous].any(1) | (states.double().prod(1) > most)
            states[here & many, node] = most + 1
            chosen = (here & ~many).nonzero()[:, 0]
            rows = problem.values[components.row[chosen]]
            states[chosen, node] = _largest_support(model, node, rows, states[chosen], effort)
    return states


def _largest_support(
    model: StructuralModel, node: int, rows: Tensor, states: Tensor, effort: Effort
) -> Tensor:
    """Returns the states of a count at that state of its parents where it has most, (n,)."""
    scope = torch.zeros(states.shape[1], dtype=torch.bool, device=rows.device)
    scope[list(model.graph.parents[node])] = True
    tables = Tables(torch.where(scope, states, 1))
    parents = model.parents_of(tables.fill(rows), node)
    support = model.mechanism(node).support(parents, effort.tail)
    support = support.clamp(max=effort.enumeration.most_states + 1)
    largest = torch.ones(len(rows), dtype=torch.int64, device=rows.device)
    largest = largest.scatter_reduce(0, tables.table, support, "amax")
    return largest.clamp(min=2)  # a scope shows by having more than one state
