r"""A structural model: a graph, a mechanism for each node, and the sweep that answers questions.

    x_i = f_i(u_i; x_pa(i)),   i in graph order,   u ~ N(0, I)          (paper, Section 2)

The noise of all nodes stands side by side on the last axis: one number a node, or one for each of
its categories where a mechanism needs several (`noise_width` in all, d where there are none).

Every question is one sweep, with policies in the place of some mechanisms (`policies`): fresh
noise samples, fresh noise under policies intervenes, abducted noise under policies is a
counterfactual. Each node reads its parents after their policies, so any number of simultaneous
interventions is right, also across an untouched mediator between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor, nn

from misscnf.graph import CausalGraph
from misscnf.mechanisms import LinearForm, Mechanism
from misscnf.mechanisms.history import Remembering
from misscnf.model.policies import Intervention, as_policies, sweep_order

__all__ = ["StructuralModel"]


class StructuralModel(nn.Module):
    """A causal graph whose nodes have mechanisms, each of its own or shared with others.

    Arguments:
        graph: The causal graph, d nodes.
        mechanisms: One mechanism for each node, with as many parents as the node has (the same
            object at several nodes serves them all); or mechanisms by key.
        keys: The key of each node, where mechanisms come by key: nodes with the same key share
            one, and so its parameters.

    Example:
        >>> from misscnf.mechanisms import Gaussian
        >>> graph = CausalGraph.read("x0 -> x1; x1 -> x2")
        >>> tied = StructuralModel(
        ...     graph, {"first": Gaussian(0), "next": Gaussian(1)}, keys=["first", "next", "next"]
        ... )
        >>> tied.blocks
        ((0,), (1, 2))
    """

    def __init__(
        self,
        graph: CausalGraph,
        mechanisms: Sequence[Mechanism] | Mapping[str, Mechanism],
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        by_key, self.keys = _by_key(graph, mechanisms, keys)
        self.graph = graph
        self.mechanisms = nn.ModuleList(by_key.values())
        """one a block"""
        self.blocks = tuple(nodes_by_key(self.keys).values())
        """the nodes of each block"""
        self.block_of = tuple(list(by_key).index(key) for key in self.keys)
        """the block of each node"""
        self._parents = [list(parents) for parents in graph.parents]
        laws = [self.mechanism(i) for i in range(len(graph))]
        ends = list(itertools.accumulate(law.noise_size for law in laws))
        self.noise_width = ends[-1]
        self._noise = [
            slice(end - law.noise_size, end) for end, law in zip(ends, laws, strict=True)
        ]
        self.discrete = tuple(law.domain.discrete for law in laws)
        self.invertible = tuple(law.invertible for law in laws)

    def like(self, mechanisms: Sequence[Mechanism]) -> StructuralModel:
        """Makes a model with the same graph and ties, of other mechanisms, one a block."""
        keys = [self.keys[nodes[0]] for nodes in self.blocks]
        return StructuralModel(self.graph, dict(zip(keys, mechanisms, strict=True)), self.keys)

    def with_state(self, state: Mapping[str, Tensor]) -> StructuralModel:
        """Returns a model with some parameters and buffers of its own, which shares all else.

        A deep copy of a model of a hundred nodes takes a tenth of a second, and replicates of a
        fit are many.
        """
        found = _with_state(self, state, "")
        assert isinstance(found, StructuralModel)
        return found

    def parents_of(self, values: Tensor, node: int) -> Tensor:
        """Returns the columns of a node's parents, (..., p)."""
        index = torch.tensor(self._parents[node], device=values.device, dtype=torch.int64)
        return values.index_select(-1, index)

    def family_of(self, values: Tensor, node: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a node's own column and its parents', of some rows and of no other column.

        Arguments:
            values: (..., N, d)
            node: The node.
            rows: (n,) which rows.

        Returns:
            (..., n) and (..., n, p).
        """
        columns = torch.tensor([node, *self._parents[node]], device=values.device)
        family = values[..., rows[:, None], columns]
        return family[..., 0], family[..., 1:]

    def mechanism(self, node: int) -> Mechanism:
        """Returns the mechanism of a node, as a function of all of its parents."""
        law, reading = self.law(node), self.graph.readings.get(node)
        return law if reading is None else Remembering(law, reading)

    def law(self, node: int) -> Mechanism:
        """Returns the mechanism of a node, as a function of what it reads of its parents."""
        return self.block(self.block_of[node])

    def block(self, block: int) -> Mechanism:
        """Returns the mechanism of a block."""
        return self.mechanisms[block]  # type: ignore[return-value]

    def log_factors(self, values: Tensor) -> Tensor:
        """Returns log p(x_i | x_pa(i)) of complete rows, (..., d)."""
        factors = [
            self.mechanism(i).log_prob(values[..., i], self.parents_of(values, i))
            for i in range(len(self.graph))
        ]
        return torch.stack(factors, dim=-1)

    def log_prob(self, values: Tensor) -> Tensor:
        """Returns log p(x) of complete rows, (...)."""
        return self.log_factors(values).sum(dim=-1)

    def generate(
        self, noise: Tensor, policies: Mapping[int, Intervention] | None = None
    ) -> Tensor:
        """Sweeps noise through the graph, under policies if there are any.

        Arguments:
            noise: (..., noise_width).
            policies: What sets a node instead of its mechanism, by its index.

        Returns:
            (..., d).
        """
        blank = noise.new_zeros(*noise.shape[:-1], len(self.graph))
        return self.complete(blank, range(len(self.graph)), noise, policies)

    def complete(
        self,
        values: Tensor,
        nodes: Sequence[int] | range,
        noise: Tensor,
        policies: Mapping[int, Intervention] | None = None,
        where: Tensor | None = None,
    ) -> Tensor:
        """Regenerates nodes, each after what it depends on, and leaves the others as they are.

        Arguments:
            values: (..., d), complete in all that regenerated nodes depend on.
            nodes: Which nodes, in graph order.
            noise: (..., noise_width).
            policies: What sets a node instead of its mechanism, by its index.
            where: (..., d), True in the cells to regenerate; all of them if None.
        """
        acting = as_policies(policies)
        columns = list(values.unbind(-1))
        for i in sweep_order(self.graph, acting, nodes):
            if i in acting:
                inputs = [
                    self._natural(i, columns, noise) if j == i else columns[j]
                    for j in acting[i].reads
                ]
                x = acting[i].act(inputs, columns[i])
            else:
                x = self._natural(i, columns, noise)
            columns[i] = x if where is None else torch.where(where[..., i], x, columns[i])
        return torch.stack(columns).movedim(0, -1)  # column by column in memory, as it is read

    def _natural(self, i: int, columns: list[Tensor], noise: Tensor) -> Tensor:
        """Returns what the mechanism makes of the noise and of the parents as they are, (...)."""
        pa, mechanism = self._parents[i], self.mechanism(i)
        blank = columns[i].new_zeros(*columns[i].shape, 0)
        parents = torch.stack([columns[j] for j in pa], -1) if pa else blank
        own = noise[..., self._noise[i]]
        u = own if mechanism.noise_size > 1 else own[..., 0]
        return mechanism.generate(u, parents).expand_as(columns[i])

    def abduct(
        self,
        values: Tensor,
        generator: torch.Generator | None = None,
        nodes: Collection[int] | None = None,
    ) -> Tensor:
        """Returns the noise of complete rows, (..., noise_width), of some nodes or of all.

        The noise of a discrete value is a draw from p(u | x, parents), by the generator. That of
        nodes which are not asked for is zero.
        """
        noise = []
        for i in range(len(self.graph)):
            mechanism = self.mechanism(i)
            if nodes is not None and i not in nodes:
                noise.append(values.new_zeros(*values.shape[:-1], mechanism.noise_size))
                continue
            u = mechanism.abduct(values[..., i], self.parents_of(values, i), generator)
            noise.append(u if mechanism.noise_size > 1 else u[..., None])
        return torch.cat(noise, dim=-1)

    def counterfactual(
        self,
        values: Tensor,
        policies: Mapping[int, Intervention],
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Returns what complete rows would have been: abduct, act, sweep. Shape (..., d).

        Only descendants of the intervened nodes are swept; every other value comes back as it was,
        to the bit.
        """
        touched = sorted(self.graph.descendants(policies))
        return self.complete(values, touched, self.abduct(values, generator), policies)

    def linear_forms(self) -> list[LinearForm | None]:
        """Returns each node's linear-Gaussian coefficients, None where it has none."""
        return [self.mechanism(i).linear_form() for i in range(len(self.graph))]

    def initialise(self, generator: torch.Generator) -> None:
        """Draws the starting parameters of all mechanisms, in graph order."""
        for block in range(len(self.blocks)):
            self.block(block).initialise(generator)

    def log_prior(self) -> Tensor | None:
        """Returns the log-density of all parameters that have a prior, (); None where none has."""
        found = [self.block(block).log_prior() for block in range(len(self.blocks))]
        parts = [part for part in found if part is not None]
        return torch.stack(parts).sum() if parts else None


def nodes_by_key(keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Returns the nodes of each key, in the order in which keys first come."""
    found: dict[str, tuple[int, ...]] = {}
    for node, key in enumerate(keys):
        found[key] = (*found.get(key, ()), node)
    return found


def _by_key(
    graph: CausalGraph,
    mechanisms: Sequence[Mechanism] | Mapping[str, Mechanism],
    keys: Sequence[str] | None,
) -> tuple[dict[str, Mechanism], tuple[str, ...]]:
    """Returns mechanisms by key, in graph order, and the key of each node."""
    if isinstance(mechanisms, Mapping):
        if keys is None or len(keys) != len(graph) or set(keys) != set(mechanisms):
            raise ValueError(
                f"mechanisms by key need the key of each of the {len(graph)} nodes, and no other "
                f"keys; got {keys!r} for {sorted(mechanisms)}"
            )
        return {key: mechanisms[key] for key in dict.fromkeys(keys)}, tuple(keys)
    if keys is not None:
        raise ValueError("keys are for mechanisms by key; give {key: mechanism}")
    if len(mechanisms) != len(graph):
        raise ValueError(f"{len(graph)} nodes need as many mechanisms; got {len(mechanisms)}")
    first: dict[Mechanism, str] = {}  # one that stands at several nodes serves them all
    tied = tuple(
        first.setdefault(m, name) for m, name in zip(mechanisms, graph.nodes, strict=True)
    )
    return {name: mechanism for mechanism, name in first.items()}, tied


def _with_state(module: nn.Module, state: Mapping[str, Tensor], prefix: str) -> nn.Module:
    def own(name: str, part: Tensor | None) -> Tensor | None:
        given = state.get(prefix + name)
        if given is None or part is None:
            return part
        return nn.Parameter(given, part.requires_grad) if isinstance(part, nn.Parameter) else given

    found = object.__new__(type(module))  # what copy.copy ends in, without its detour by pickle
    vars(found).update(
        vars(module),
        _parameters={name: own(name, part) for name, part in module._parameters.items()},
        _buffers={name: own(name, part) for name, part in module._buffers.items()},
        _modules={
            name: None if part is None else _with_state(part, state, f"{prefix}{name}.")
            for name, part in module._modules.items()
        },
    )
    return found
