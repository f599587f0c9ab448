r"""A fit moved to the maximum of a likelihood nearby, such as one in which a slope is held.

With θ(s) the maximum where something is held at s, neighbours are close: each search starts where
the last one ended,

    θ(s_k) = argmax_θ  Σ_rows log p(x_O; θ, s_k) + log prior(θ),      from θ(s_{k−1}),

in coordinates in which the information of the rows where the path starts is one. So many points
of a path cost little more than one fit. Forms of mechanisms stay as they were chosen.

Where integrals are sums, closed forms or quadrature, the likelihood itself is climbed, else that
of completions (`solve.monte_carlo`). Networks are trained on completed rows, from where they are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.errors import solvable
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.fisher import likelihood_noise, row_log_likelihood, rows_by_chance
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.quasi_newton import maximise
from misscnf.fitting.solve.sandwich import measure_information
from misscnf.fitting.train.ensemble import CompletionLikelihood
from misscnf.fitting.train.loop import Trainer
from misscnf.inference.elimination import Plan
from misscnf.model import StructuralModel
from misscnf.threads import one_thread

__all__ = ["Refitter"]


class Refitter:
    """Finds the maxima of likelihoods that are close to that of a fit, on the same rows.

    Arguments:
        start: A model of the kind that is to be moved, where the path begins.
        rows: The rows of the fit.
        settings: How the fit was made.
        seed: Where randomness starts.
        also: Blocks that are moved whatever rows show, since they do not start at a maximum.
    """

    @solvable()
    @one_thread()
    def __init__(
        self,
        start: StructuralModel,
        rows: RowSource,
        settings: Settings,
        seed: int = 0,
        also: Collection[int] = (),
    ) -> None:
        self.rows, self.settings, self.seed = rows, settings, seed
        self.plan = Plan.of(start.graph, rows)
        self.trained = [b for b, law in enumerate(start.mechanisms) if not law.solvable]
        noise = 0.0 if self.trained else likelihood_noise(start, rows, settings)
        self.exact = not self.trained and noise <= settings.solving.most_noise_of_line
        self.moved = sorted({*_not_whole(start, rows), *also})
        """The blocks that anything held can move: families that every row shows are not."""
        self.whitening = self._whitening(start) if self.exact and self.moved else None

    @solvable()
    @one_thread()
    def maximum(self, start: StructuralModel) -> StructuralModel:
        """Returns a model at the maximum, found from another, which is left as it is."""
        model = copy.deepcopy(start).double().requires_grad_()
        if self.exact:
            self._climb(model)
        elif not self.trained:
            maximise_monte_carlo(model, self.rows, self.settings, self.seed)
        else:
            self._train(model)
        return model.eval().requires_grad_(requires_grad=False)

    def _climb(self, model: StructuralModel) -> None:
        """Moves lines and curves to the maximum of an exact likelihood, in place."""
        if not self.moved:
            return
        laws = [model.block(block) for block in self.moved]
        model.requires_grad_(requires_grad=False)
        for law in laws:
            law.requires_grad_()
        lowest = [
            law.lower_bounds().get(name, -math.inf)
            for law in laws
            for name, parameter in law.named_parameters()
            for _ in range(parameter.numel())
        ]

        def objective() -> float:
            effort = self.settings.integration.linear
            total = float(row_log_likelihood(model, self.rows, self.plan, effort).mean())
            priors = [law.log_prior() for law in laws]
            for prior in (one / len(self.rows) for one in priors if one is not None):
                prior.backward()
                total += float(prior.detach())
            return total

        parameters = [parameter for law in laws for parameter in law.parameters()]
        maximise(parameters, objective, lowest=lowest, whitening=self.whitening)

    def _train(self, model: StructuralModel) -> None:
        """Trains networks from where they are, and solves for the rest, in turns and in place."""
        training, rows = self.settings.training, self.rows
        order = torch.randperm(len(rows), generator=derive_generator(self.seed, "held out"))
        held_out = int(self.settings.replicates.held_out * len(rows))
        split = order[held_out:], order[:held_out]
        short = replace(training, epochs=math.ceil(training.scale_share * training.epochs))
        settings = replace(self.settings, training=short)
        for turn in range(training.rounds):
            maximise_monte_carlo(model, rows, self.settings, self.seed, rough=True)
            generator = derive_generator(self.seed, "refit", turn)
            about = (self.settings.solving.completions, generator)
            drawn = Completions.draw(model, rows, *about, self.settings.integration.training)
            given = (drawn.to(torch.float32), split, torch.ones(1, len(rows)), settings)
            objective = CompletionLikelihood([model.float()], *given, self.seed, self.trained)
            Trainer(objective, settings.training).run(None)
            objective.ensemble.write(objective.ensemble.parameters, [model])
            model.double()
        maximise_monte_carlo(model, rows, self.settings, self.seed)

    def _whitening(self, model: StructuralModel) -> np.ndarray:
        """Returns W with W Wᵀ the inverse of the information a row, of the moved blocks."""
        solving, rows = self.settings.solving, self.rows
        some = rows_by_chance(rows, solving.whitening_rows)
        generator, effort = derive_generator(0, "white"), self.settings.integration.completions
        drawn = Completions.draw(model, some, solving.whitening_completions, generator, effort)
        found = measure_information(model, drawn, self.settings.replicates)
        matrix = found.matrix / len(some) + (found.prior_precision / len(rows)).diag()
        sizes = [sum(part.numel() for part in law.parameters()) for law in model.mechanisms]
        pieces = torch.arange(len(matrix)).split(sizes)
        among = torch.cat([pieces[block] for block in self.moved])
        size, direction = torch.linalg.eigh(matrix[among][:, among])
        floor = solving.least_information * float(size.max())
        white: Tensor = direction / size.clamp(min=floor).sqrt()
        return white.numpy()


def _not_whole(model: StructuralModel, rows: RowSource) -> list[int]:
    """Returns the blocks with a family that some row does not show whole."""
    families = model.graph.families
    whole = torch.ones(len(families), dtype=torch.bool)
    for batch in rows.batches():
        whole &= torch.stack([batch.observed[:, list(family)].all() for family in families])
    return [
        block for block, nodes in enumerate(model.blocks) if not bool(whole[list(nodes)].all())
    ]
