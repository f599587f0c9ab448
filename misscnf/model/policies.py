r"""Policies: what takes the place of a node's mechanism when somebody intervenes.

    x_i = f_i(u_i; x_pa(i))      becomes      x_i = π_i(x_r(i), v_i)

| policy | π | reads r(i) |
|---|---|---|
| `Hold` | a constant, or one value a row | nothing |
| `Rule` | a function of columns | those columns |
| `Chance` | a draw from a law that depends on columns | those columns |

Columns are read in the intervened world, after their own policies. A policy that reads its own
node reads its natural value f_i(u_i; x_pa(i)): a shift is `Rule(lambda x: x + 1, (i,))`. Parents
are cut unless the natural value is read. The noise v of a draw is new, whatever u was abducted.

What a policy reads becomes a parent of its node, so that the intervened world has a graph of its
own. It must not have a cycle: a policy cannot read what lies downstream of its node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import networkx as nx
from torch import Tensor

from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.graph.dag import topological_order

__all__ = [
    "Policy",
    "Hold",
    "Rule",
    "Chance",
    "Law",
    "Intervention",
    "as_policies",
    "dependencies",
    "needed_for",
    "sweep_order",
]


class Policy(ABC):
    """What sets a node instead of its mechanism.

    Example:
        >>> import torch
        >>> class Doubled(Policy):  # twice what it would be by itself
        ...     reads = (1,)
        ...
        ...     def act(self, inputs, like):
        ...         return 2 * inputs[0]
        >>> Doubled().act([torch.tensor([1.0, 4.0])], like=torch.zeros(2)).tolist()
        [2.0, 8.0]
    """

    reads: tuple[int, ...] = ()
    """The nodes that it reads, its own for its natural value."""

    @abstractmethod
    def act(self, inputs: Sequence[Tensor], like: Tensor) -> Tensor:
        """Returns the values that it assigns, (...).

        Arguments:
            inputs: The values of what it reads, (...) each, in the order of `reads`.
            like: (...) a column of the same world, for shape and precision.
        """

    def of_rows(self, keep: Tensor) -> Policy:
        """Returns the same policy for some of the rows, (n,) True where kept."""
        return self


@dataclass(frozen=True)
class Hold(Policy):
    """Holds a node at a value, or at one value a row.

    Example:
        >>> import torch
        >>> Hold(torch.tensor(2.0)).act([], like=torch.zeros(3))
        tensor([2., 2., 2.])
    """

    value: Tensor
    """Broadcastable to (...)."""

    def act(self, inputs: Sequence[Tensor], like: Tensor) -> Tensor:
        """Returns the value."""
        return self.value.to(like).expand_as(like)

    def of_rows(self, keep: Tensor) -> Policy:
        """Returns the values of some of the rows."""
        return Hold(self.value[keep]) if self.value.shape == keep.shape else self


@dataclass(frozen=True)
class Rule(Policy):
    """Sets a node to a function of columns.

    Example:
        >>> import torch
        >>> policy = Rule(lambda dose: dose.clamp(max=2.0), reads=(0,))
        >>> policy.act([torch.tensor([1.0, 3.0])], like=torch.zeros(2))
        tensor([1., 2.])
    """

    function: Callable[..., Tensor]
    """Takes what is read, (...) each, one after the other."""
    reads: tuple[int, ...]
    """The nodes that it reads, its own for its natural value."""

    def act(self, inputs: Sequence[Tensor], like: Tensor) -> Tensor:
        """Returns what the function says."""
        return self.function(*inputs).to(like)


class Law(Protocol):
    """A conditional law; what is read and the value or its number broadcast.

    Example:
        >>> import torch
        >>> class Around:  # normal, around what is read
        ...     def draw(self, score, inputs):
        ...         return inputs[0] + score
        ...
        ...     def log_prob(self, x, inputs):
        ...         return torch.distributions.Normal(inputs[0], 1.0).log_prob(x)
        ...
        ...     def support(self, inputs, tail):
        ...         raise TypeError("it is continuous")
        >>> Around().draw(torch.tensor([0.5]), [torch.tensor([2.0])]).tolist()
        [2.5]
    """

    def draw(self, score: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns a value from one standard normal number, (...)."""

    def log_prob(self, x: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns the log-density, or log-probability, of a value, (...)."""

    def support(self, inputs: Sequence[Tensor], tail: float) -> Tensor:
        """Returns how many values 0, 1, … hold all but `tail` of a law of counts, (...)."""


@dataclass(frozen=True)
class Chance(Policy):
    """Draws a node from a law.

    Example:
        >>> import torch
        >>> class Standard:
        ...     def draw(self, score, inputs):
        ...         return score
        >>> policy = Chance(Standard(), score=torch.tensor([-1.0, 1.0]))
        >>> policy.act([], like=torch.zeros(2)).tolist()
        [-1.0, 1.0]
    """

    law: Law
    """What it is drawn from."""
    score: Tensor
    """Standard normal numbers, one for each value that is drawn; they broadcast to (...). Two
    policies with the same numbers differ by their laws alone."""
    reads: tuple[int, ...] = ()
    """The nodes that the law depends on."""

    def act(self, inputs: Sequence[Tensor], like: Tensor) -> Tensor:
        """Returns a draw."""
        return self.law.draw(self.score.to(like).expand_as(like), inputs).to(like)

    def of_rows(self, keep: Tensor) -> Policy:
        """Returns the draws of some of the rows."""
        same = self.score.shape == keep.shape
        return replace(self, score=self.score[keep]) if same else self


Intervention = Policy | Tensor | Callable[[Tensor], Tensor]
"""A policy; or values to hold, or a function of the natural value, for short."""


def as_policies(interventions: Mapping[int, Intervention] | None) -> dict[int, Policy]:
    """Returns interventions by node as policies."""
    policies: dict[int, Policy] = {}
    for node, given in (interventions or {}).items():
        if isinstance(given, Policy):
            policies[node] = given
        else:
            policies[node] = Hold(given) if isinstance(given, Tensor) else Rule(given, (node,))
    return policies


def dependencies(graph: CausalGraph, policies: Mapping[int, Policy]) -> list[set[int]]:
    """Returns for each node what it depends on directly in the intervened world."""
    parents = []
    for i, causes in enumerate(graph.parents):
        policy = policies.get(i)
        if policy is None:
            parents.append(set(causes))
        else:
            natural = set(causes) if i in policy.reads else set()
            parents.append(natural | set(policy.reads) - {i})
    return parents


def needed_for(
    graph: CausalGraph, policies: Mapping[int, Policy], nodes: Collection[int]
) -> set[int]:
    """Returns nodes with all that they depend on in the intervened world."""
    parents, needed, ahead = dependencies(graph, policies), set(nodes), list(nodes)
    while ahead:
        fresh = parents[ahead.pop()] - needed
        needed |= fresh
        ahead += fresh
    return needed


def sweep_order(
    graph: CausalGraph, policies: Mapping[int, Policy], nodes: Sequence[int] | None = None
) -> Sequence[int]:
    """Returns nodes in an order in which each comes after what it depends on under the policies.

    That is the order of the graph where it will do. A policy that reads what its node leads to,
    and policies that read one another in a circle, are refused.

    Arguments:
        graph: The causal graph.
        policies: The policies by node.
        nodes: Which nodes, in graph order; all of them if None.
    """
    nodes = range(len(graph)) if nodes is None else nodes
    parents = dependencies(graph, policies)
    if not policies or all(max(pa, default=-1) < i for i, pa in enumerate(parents)):
        return nodes
    try:
        order = topological_order(parents)
    except nx.NetworkXUnfeasible:
        raise _refusal(graph, policies) from None
    wanted = set(nodes)
    return [i for i in order if i in wanted]


def _refusal(graph: CausalGraph, policies: Mapping[int, Policy]) -> InputError:
    """Says which policy reads what it must not."""
    names = graph.nodes
    without_rules = dependencies(graph, policies)
    for i, policy in policies.items():
        without_rules[i] -= set(policy.reads)
        without_rules[i] |= set(graph.parents[i]) if i in policy.reads else set()
    for i, policy in policies.items():
        below = _reached(without_rules, [i]) - {i}
        for j in policy.reads:
            if j in below:
                return InputError(
                    f"the rule for {names[i]!r} reads {names[j]!r}, which is downstream of it: "
                    f"{names[i]!r} would depend on its own effect; a rule reads columns that "
                    f"{names[i]!r} does not lead to."
                )
    everything = dependencies(graph, policies)
    circle = [i for i in policies if policies[i].reads and _in_circle(everything, i)]
    listed = " and ".join(repr(names[i]) for i in circle)
    return InputError(
        f"the rules for {listed} read one another in a circle; let one of them read less."
    )


def _in_circle(parents: Sequence[set[int]], node: int) -> bool:
    return bool(_reached(parents, [node]) & parents[node])


def _reached(parents: Sequence[set[int]], nodes: Iterable[int]) -> set[int]:
    """Returns nodes and all that descends from them, whatever their order."""
    reached, before = set(nodes), -1
    while before < len(reached):
        before = len(reached)
        reached |= {i for i, causes in enumerate(parents) if causes & reached}
    return reached
