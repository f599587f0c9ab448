r"""The world under policies, as a structural model of its own.

Likelihoods and posteriors need a graph and mechanisms, so a policy is written into them:

| policy | in the intervened model |
|---|---|
| value held | a node without a factor, always known |
| draw | a node with the policy's law, whose parents are what it reads |
| rule | its children read what the rule reads, and work the rule out themselves |
| natural value that a policy reads | one more node, never observed, with the mechanism as it was |

A rule has no noise, so that its node needs no integral: p(y | t) with t = π(x) is p(y | π(x)), a
factor of x. Its own node stays as a leaf, to be filled in at the end. Where a row shows all that
a rule reads, the rule is settled there, and its node is held at what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.mechanisms import LinearForm, Mechanism
from misscnf.model.policies import Chance, Hold, Policy, Rule, sweep_order
from misscnf.model.structural import StructuralModel

__all__ = ["World", "worlds"]


@dataclass(frozen=True)
class World:
    """Some rows of a table in the world under policies. n rows, d nodes, D of the new model."""

    rows: Tensor
    """(n,) which rows of the table."""
    model: StructuralModel
    """The intervened model."""
    values: Tensor
    """(n, D) with finite numbers in the holes."""
    observed: Tensor
    """(n, D)"""
    held: tuple[int, ...]
    """Nodes of the new model without a factor, known in every row."""
    place: Tensor
    """(d,) where the nodes of the table are in the new model."""


def worlds(
    model: StructuralModel, policies: Mapping[int, Policy], values: Tensor, observed: Tensor
) -> Iterator[World]:
    """Yields parts that together hold each row once, in each of which the same rules are settled.

    What a row shows of a node with a value or a rule is left out: it is of another world. What it
    shows of a node with a draw counts as drawn. Rows are (N, d), with finite numbers in the holes.
    """
    values, observed = values.clone(), observed.clone()
    rules = []
    for i in sweep_order(model.graph, policies):
        policy = policies.get(i)
        if isinstance(policy, Hold):
            values[:, i], observed[:, i] = policy.value, True
        elif isinstance(policy, Rule):
            rules.append(i)
            settled = observed[:, list(policy.reads)].all(1) & (i not in policy.reads)
            observed[:, i] = settled
            inputs = [values[settled, j] for j in policy.reads]
            values[settled, i] = policy.act(inputs, values[settled, i])
    if not rules:
        yield _world(model, policies, torch.arange(len(values)), values, observed)
        return
    patterns, part = observed[:, rules].unique(dim=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = (part == number).nonzero()[:, 0]
        here = dict(policies)
        for i, settled in zip(rules, pattern.tolist(), strict=True):
            if settled:
                here[i] = Hold(values[rows, i])
        yield _world(model, here, rows, values[rows], observed[rows])


def _world(
    model: StructuralModel,
    policies: Mapping[int, Policy],
    rows: Tensor,
    values: Tensor,
    observed: Tensor,
) -> World:
    held = tuple(i for i, policy in policies.items() if isinstance(policy, Hold))
    if len(held) == len(policies):
        return World(rows, model, values, observed, held, torch.arange(len(model.graph)))
    written = _Writing(model, policies)
    place = torch.tensor(written.place[: len(model.graph)])
    size = (len(rows), len(written.place))
    wide, seen = values.new_zeros(size), observed.new_zeros(size)
    wide[:, place], seen[:, place] = values, observed
    return World(rows, written.model, wide, seen, tuple(written.place[i] for i in held), place)


class _Writing:
    """Writes policies into a graph and its mechanisms.

    Variables are numbered like the nodes of the graph, 0 … d − 1, and the natural values that
    policies read come after them; `origin` is the node of each.
    """

    def __init__(self, model: StructuralModel, policies: Mapping[int, Policy]) -> None:
        self.base, self.policies = model, policies
        order = sweep_order(model.graph, policies)
        shifted = [i for i in order if i in policies and i in policies[i].reads]
        self.natural = {i: len(model.graph) + k for k, i in enumerate(shifted)}
        self.origin = [*range(len(model.graph)), *shifted]
        names = list(model.graph.nodes)
        names += [_unused(f"natural {model.graph.nodes[i]}", names) for i in shifted]
        swept = [v for i in order for v in (self.natural.get(i), i) if v is not None]
        listed = [names[v] for v in swept]
        edges = [(names[j], names[v]) for v in range(len(names)) for j in self.sources(v)]
        graph = CausalGraph.from_edges(edges, listed)
        self.place = [graph.index(name) for name in names]
        variable = {place: v for v, place in enumerate(self.place)}
        parents = [[variable[j] for j in graph.parents[place]] for place in range(len(graph))]
        mechanisms = [self.mechanism(variable[k], pa) for k, pa in enumerate(parents)]
        self.model = StructuralModel(graph, mechanisms)

    def reads(self, variable: int) -> list[int]:
        """Returns what a variable depends on, by its mechanism or by its policy."""
        policy = self.policies.get(variable)
        if policy is None:
            return list(self.base.graph.parents[self.origin[variable]])
        return [self.natural[variable] if j == variable else j for j in policy.reads]

    def sources(self, variable: int) -> set[int]:
        """Returns the same with what rules read in the place of what they set."""
        found: set[int] = set()
        for j in self.reads(variable):
            found |= self.sources(j) if isinstance(self.policies.get(j), Rule) else {j}
        return found

    def value(self, variable: int, columns: Mapping[int, Tensor]) -> Tensor:
        """Returns the value of a variable, by its rule where it has one."""
        policy = self.policies.get(variable)
        if not isinstance(policy, Rule):
            return columns[variable]
        inputs = [self.value(j, columns) for j in self.reads(variable)]
        return policy.act(inputs, inputs[0])

    def mechanism(self, variable: int, parents: list[int]) -> Mechanism:
        """Returns the mechanism of a variable whose parents come in this order."""
        base, policy = self.base.mechanism(self.origin[variable]), self.policies.get(variable)
        if policy is not None:
            return _Acting(policy, base.domain, self, variable, parents)
        same = self.reads(variable) == parents
        return base if same else _Reading(base, self, variable, parents)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "'"
    return name


class _Written(Mechanism):
    """What stands at a variable of the intervened model; it works rules out from its parents."""

    def __init__(
        self, domain: Domain, writing: _Writing, variable: int, parents: list[int]
    ) -> None:
        super().__init__()
        self._domain, self.writing = domain, writing
        self.wanted, self.given = writing.reads(variable), parents

    @property
    def domain(self) -> Domain:
        """What the values can be."""
        return self._domain

    def inputs(self, parents: Tensor) -> list[Tensor]:
        """Returns the wanted variables, (...) each, from the given ones, (..., p)."""
        columns = dict(zip(self.given, parents.unbind(-1), strict=True))
        return [self.writing.value(j, columns) for j in self.wanted]


class _Reading(_Written):
    """A mechanism some of whose parents are set by rules, or come in another order."""

    def __init__(
        self, base: Mechanism, writing: _Writing, variable: int, parents: list[int]
    ) -> None:
        super().__init__(base.domain, writing, variable, parents)
        self.base = base

    @property
    def noise_size(self) -> int:
        """How many standard normal numbers the base needs."""
        return self.base.noise_size

    def _parents(self, parents: Tensor) -> Tensor:
        return torch.stack(self.inputs(parents), -1)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | parents after their rules)."""
        return self.base.log_prob(x, self._parents(parents))

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the value that the noise makes."""
        return self.base.generate(u, self._parents(parents))

    def abduct(
        self, x: Tensor, parents: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Returns the noise that makes the value."""
        return self.base.abduct(x, self._parents(parents), generator)

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        """Returns a value of the law from one number."""
        return self.base.draw(score, self._parents(parents))

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns how many values hold all the mass of a discrete law."""
        return self.base.support(self._parents(parents), tail)

    def linear_form(self) -> LinearForm | None:
        """Returns the line of the base, where no rule stands between."""
        form = self.base.linear_form()
        if form is None or form.slopes is not None or sorted(self.wanted) != sorted(self.given):
            return None
        weights = form.weights[[self.wanted.index(j) for j in self.given]]
        offset = form.offset
        turned = None if offset is None else lambda parents: offset(self._parents(parents))
        return LinearForm(form.intercept, weights, form.scale, turned)


class _Acting(_Written):
    """A policy in the place of a mechanism."""

    def __init__(
        self, policy: Policy, domain: Domain, writing: _Writing, variable: int, parents: list[int]
    ) -> None:
        super().__init__(domain, writing, variable, parents)
        self.policy = policy

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the law of a draw; what is held or follows a rule has no density."""
        if not isinstance(self.policy, Chance):
            raise InputError("a value that is held, or that follows a rule, has no density.")
        return self.policy.law.log_prob(x, self.inputs(parents)).to(x)

    @property
    def invertible(self) -> bool:
        """Never: a policy's noise is not looked for."""
        return False

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns what the policy assigns; the noise is that of a draw."""
        inputs = self.inputs(parents)
        if isinstance(self.policy, Chance):
            return self.policy.law.draw(u, inputs).to(u)
        return self.policy.act(inputs, u)

    def abduct(
        self, x: Tensor, parents: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Refuses: counterfactuals abduct the noise of the world without policies."""
        raise InputError("a policy has no noise to abduct.")

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns how many values hold all the mass of a draw of counts."""
        assert isinstance(self.policy, Chance)
        return self.policy.law.support(self.inputs(parents), tail).expand(parents.shape[:-1])
