r"""What a training loop follows: an objective, and the gradient of the observed-data likelihood.

An objective knows its rows and what they say of parameters; the loop (`loop`) knows steps, epochs,
rates and which epoch is kept. `ObservedLikelihood` is that of one model on incomplete rows;
`ensemble` has that of many models on completions.

Fisher's identity: the score of what is seen is the complete-data score, averaged over the
posterior of what is hidden,

    ∇ log p(x_O) = E[ Σ_i ∇ log φ_i | x_O ].

So the hidden nodes are drawn without gradient, a few completions of each row are resampled by
their weights, and only complete-data factors are differentiated. No gradient flows through
samples, and a step costs little more than one on complete rows. The loss is a sum over nodes:
each node's part is back-propagated by itself, so that memory stays flat in the number of nodes.

The paper differentiates log p̂ itself, through the draws: `pathwise_gradient`.

A fit begins with the factors that have no integral, Σ log φ_i over the families that a row shows
whole (`complete_family_gradient`): steps that cost no draw, from which networks learn their rough
form. What they find is where the likelihood starts, not an estimate: which families are seen may
depend on their values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Settings
from misscnf.inference.elimination import Components, Plan
from misscnf.inference.integrals import Effort, integrate
from misscnf.inference.likelihood import free_log_prob, observed_log_prob
from misscnf.model import StructuralModel

__all__ = ["Objective", "ObservedLikelihood", "StepReport"]
__all__ += ["fisher_gradient", "pathwise_gradient", "complete_family_gradient"]


@dataclass(frozen=True)
class StepReport:
    """What a step learned on its way."""

    log_prob: float | None = None
    """Mean log-density of what the rows show, where the step computed it."""
    below_target: float = 0.0
    """Share of the components with fewer effective draws than asked for."""


class Objective(ABC):
    """What a training loop follows: parameters, and what rows say of them.

    One model, or B replicates of one, along the first axis of every parameter.
    """

    parameters: Mapping[str, Tensor]
    """What is trained, by name; changed in place."""
    replicates: tuple[int, ...]
    """() for one model, (B,) for replicates."""
    epochs: int
    held_out: int
    """How many rows judge what is learned; maybe none."""
    state: Mapping[str, Tensor]
    """What else changes from step to step, in place; a checkpoint keeps it."""

    @abstractmethod
    def order(self, epoch: int) -> Tensor:
        """Returns the numbers of all rows that are learned from, in the order of an epoch."""

    @abstractmethod
    def __len__(self) -> int:
        """Returns how many rows are learned from."""

    @abstractmethod
    def gradient(self, rows: Tensor, epoch: int, step: int) -> StepReport:
        """Adds the gradient of −mean log-density of some rows, with priors, to the parameters."""

    @abstractmethod
    def validate(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the log-densities of the held-out rows, by the same draws at every call.

        (n,), or (B, n) of replicates, times the weights of the rows.
        """


class ObservedLikelihood(Objective):
    """The likelihood of what incomplete rows show, for one model.

    Arguments:
        model: The model, in the precision and on the device of its training.
        rows: Rows to learn from; read batch by batch.
        held_out: Rows that judge, or None.
        settings: How to train, and how hard to work on what is hidden.
        seed: Where randomness starts.
    """

    def __init__(
        self,
        model: StructuralModel,
        rows: RowSource,
        held_out: RowSource | None,
        settings: Settings,
        seed: int,
    ) -> None:
        self.model, self.rows, self.seed = model, rows, seed
        self.training, self.integration = settings.training, settings.integration
        self.parameters, self.replicates = dict(model.named_parameters()), ()
        self.like = next(iter(self.parameters.values())).detach()
        blocks = [model.block(block) for block in range(len(model.blocks))]
        self.with_prior = [mechanism for mechanism in blocks if mechanism.prior_precision()]
        self.plan = self._plan(rows)
        self.judges = None if held_out is None else (held_out, self._plan(held_out))
        self.held_out = 0 if held_out is None else len(held_out)
        self.well_covered = _well_covered(model, self.plan, self.training.fewest_complete)
        any_covered = any(model.graph.parents[i] for i in self.well_covered)
        share = self.training.complete_family_share if any_covered else 0.0
        before = round(share * self.training.epochs)
        self.epochs = before + self.training.epochs
        # With nothing hidden, the likelihood is no dearer than its complete families: the same.
        self.complete_family_epochs = before if bool(self.plan.hidden.any()) else 0
        self.last = None
        """(N, d) where each row was last completed, the state of its chain; nan where not yet"""
        if _hides_together(self.plan):
            self.last = self.like.new_full((len(rows), rows.columns), torch.nan)
        self.state = {} if self.last is None else {"last": self.last}

    def _plan(self, rows: RowSource) -> Plan:
        plan = Plan.of(self.model.graph, rows, joint=self.integration.joint)
        return plan.to(self.like.device)

    def __len__(self) -> int:
        return len(self.rows)

    def order(self, epoch: int) -> Tensor:
        """Returns all rows, shuffled."""
        return torch.randperm(len(self), generator=derive_generator(self.seed, "shuffle", epoch))

    def gradient(self, rows: Tensor, epoch: int, step: int) -> StepReport:
        """Adds the gradient of −mean log p(x_O) − log prior / N to the parameters."""
        device = self.like.device
        generator = derive_generator(self.seed, "step", epoch, step, device=device)
        values, rows = self._numbers(self.rows.take(rows).values), rows.to(device)
        report = self._gradient(values, rows, generator, epoch)
        for mechanism in self.with_prior:
            log_prior = mechanism.log_prior()
            assert log_prior is not None
            (-log_prior / len(self)).backward()
        return report

    def _gradient(
        self, values: Tensor, rows: Tensor, generator: Generator, epoch: int
    ) -> StepReport:
        plan, effort = self.plan.select(rows), self.integration.training
        if epoch < self.complete_family_epochs:
            return complete_family_gradient(self.model, values, plan, self.well_covered)
        if self.training.gradient == "pathwise":
            return pathwise_gradient(self.model, values, plan, effort, generator)
        last = None if self.last is None else self.last[rows]
        completions = self.training.completions
        report = fisher_gradient(self.model, values, plan, effort, completions, generator, last)
        if self.last is not None and last is not None:
            self.last[rows] = last
        return report

    def _numbers(self, values: Tensor) -> Tensor:
        """Returns values as the model computes; column by column in memory, as nodes read them."""
        return values.to(self.like).T.contiguous().T

    @torch.no_grad()
    def validate(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns log p(x_O) of the held-out rows, (n,)."""
        assert self.judges is not None
        now = {name: parameter.clone() for name, parameter in self.parameters.items()}
        self._load(parameters)
        (held_out, plan), found, start = self.judges, [], 0
        generator = derive_generator(self.seed, "validate", device=self.like.device)
        effort = self.integration.validation
        for batch in held_out.batches(effort.rows_at_once):
            values = self._numbers(batch.values)
            part = plan.select(torch.arange(start, start + len(values), device=values.device))
            found.append(observed_log_prob(self.model, values, part, generator, effort).log_prob)
            start += len(values)
        self._load(now)
        return torch.cat(found)

    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[name])


def _well_covered(model: StructuralModel, plan: Plan, fewest: int) -> frozenset[int]:
    """Returns the nodes whose block has a complete family in enough rows, over all its nodes.

    Complete rows may be a selection, as the graph says: the likelihood corrects what they taught.
    """
    rows = torch.bincount(plan.pattern, minlength=len(plan.free))
    complete = (rows[:, None] * plan.free).sum(0).tolist()
    enough = [sum(complete[i] for i in nodes) >= fewest for nodes in model.blocks]
    return frozenset(i for i, block in enumerate(model.block_of) if enough[block])


def _hides_together(plan: Plan) -> bool:
    """Says whether some row hides several nodes in one component."""
    node = torch.arange(len(plan.graph), device=plan.label.device)
    return bool((plan.hidden & (plan.label != node)).any())  # labelled by a smaller node


def fisher_gradient(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    effort: Effort,
    completions: int,
    generator: Generator,
    last: Tensor | None = None,
) -> StepReport:
    """Adds the gradient of −mean log p(x_O) to the parameters.

    Arguments:
        model: The structural model.
        values: (N, d) rows of the mini-batch, with finite numbers in the holes.
        plan: Their plan.
        effort: How hard to work on what is hidden.
        completions: Posterior draws of each row that are differentiated.
        generator: Where randomness comes from.
        last: (N, d) where the rows were last completed, nan where not yet; written to. Draws go
            on from there, so that few of them are no source of bias over many steps.
    """
    components = plan.components()
    with torch.no_grad():
        completed, total, below_target = _complete(
            model, values, components, effort, completions, generator, last
        )
    drawn_nodes, drawn_rows, _ = components.factors()
    order = torch.argsort(drawn_nodes, stable=True)
    free_by_node = _by_node(*plan.free_factors(), len(model.graph))
    drawn_by_node = _by_node(drawn_nodes[order], drawn_rows[order], len(model.graph))
    for node, (free, drawn) in enumerate(zip(free_by_node, drawn_by_node, strict=True)):
        if not len(free) and not len(drawn):
            continue
        own, parents = model.family_of(values, node, free)
        drawn_own, drawn_parents = model.family_of(completed, node, drawn)
        factor = model.mechanism(node).log_prob(
            torch.cat([own, drawn_own.flatten()]),
            torch.cat([parents, drawn_parents.flatten(0, 1)]),
        )
        free_sum = factor[: len(free)].sum()
        total += float(free_sum.detach())
        loss = -(free_sum + factor[len(free) :].sum() / completions) / len(values)
        if loss.requires_grad:
            loss.backward()
    return StepReport(total / len(values), below_target)


def complete_family_gradient(
    model: StructuralModel, values: Tensor, plan: Plan, nodes: Collection[int]
) -> StepReport:
    """Adds the gradient of −Σ log φ_i / N over the families of some nodes that rows show whole."""
    for node, rows in enumerate(_by_node(*plan.free_factors(), len(model.graph))):
        if node in nodes and len(rows):
            factor = model.mechanism(node).log_prob(*model.family_of(values, node, rows))
            loss = -factor.sum() / len(values)
            if loss.requires_grad:
                loss.backward()
    return StepReport()


def _complete(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    completions: int,
    generator: Generator,
    last: Tensor | None = None,
) -> tuple[Tensor, float, float]:
    """Returns completed rows (S, N, d), Σ log-integrals, and the share that fell short."""
    if not len(components):
        return values.expand(completions, *values.shape), 0.0, 0.0
    # Column by column in memory, as nodes read them.
    completed = values.T.repeat(completions, 1, 1).transpose(1, 2)
    total, below_target = 0.0, 0
    for integral in integrate(model, values, components, effort, generator, last):
        c = integral.components
        drawn = integral.draw(completions, generator, even=True)
        completed[:, c.cell_row, c.cell_node] = drawn.T.to(values)
        total += float(integral.log_integral().sum())
        below_target += integral.below_target
    if last is not None:
        # Spread evenly, completions are in order: only one by chance has the law of a draw.
        one = int(torch.randint(completions, (), generator=generator, device=generator.device))
        where = components.cell_row, components.cell_node
        last[where] = completed[one][where]
    return completed, total, below_target / len(components)


def _by_node(nodes: Tensor, rows: Tensor, count: int) -> tuple[Tensor, ...]:
    """Splits rows that are sorted by node into one piece a node."""
    return rows.split(torch.bincount(nodes, minlength=count).tolist())


def pathwise_gradient(
    model: StructuralModel, values: Tensor, plan: Plan, effort: Effort, generator: Generator
) -> StepReport:
    """Adds the gradient of −mean log p̂(x_O), through the draws, as the paper does."""
    log_prob = free_log_prob(model, values, plan).sum()
    for integral in integrate(model, values, plan.components(), effort, generator):
        log_prob = log_prob + integral.log_integral().sum()
    mean = log_prob / len(values)
    if mean.requires_grad:
        (-mean).backward()
    return StepReport(float(mean.detach()))
