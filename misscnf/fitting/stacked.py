r"""B sets of parameters of one structural model, stacked: evaluated, and moved, together.

An optimiser that works element by element does not mix them, so that B fits cost little more than
one wherever tensors are small. Parameters belong to blocks: what several nodes share is stacked
once, and each of these nodes is evaluated with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from misscnf.fitting.completions import LogFactor, LogProb
from misscnf.model import StructuralModel

__all__ = ["Ensemble", "Parameters", "Prior"]

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Prior:
    """The normal prior of one parameter of a block, in all replicates."""

    block: int
    name: str
    precision: Tensor
    """of the parameter's shape"""
    centre: Tensor
    """the same for each of B replicates"""

    def log_prob(self, parameters: Sequence[Parameters]) -> Tensor:
        """Returns the log-densities of all replicates, up to constants, added up, ()."""
        return self.log_probs(parameters).sum()

    def log_probs(self, parameters: Sequence[Parameters]) -> Tensor:
        """Returns the log-density of each replicate, up to a constant, (B,)."""
        away = parameters[self.block][self.name] - self.centre
        return -0.5 * (self.precision * away.square()).flatten(1).sum(1)


class Ensemble:
    """B sets of parameters of one structural model.

    Arguments:
        models: The B models, of the same shape.
        blocks: The blocks whose parameters are stacked; None for all. The nodes of others are as
            the fit has them.
    """

    def __init__(
        self, models: Sequence[StructuralModel], blocks: Collection[int] | None = None
    ) -> None:
        self.size, self.block_of = len(models), models[0].block_of
        self.shells: list[LogProb] = []
        self.parameters: list[Parameters] = []
        """Of each block, by name, with the replicates along the first axis."""
        for block in range(len(models[0].blocks)):
            shells = [LogProb(model.block(block)) for model in models]
            stacked: Parameters = {}
            if blocks is None or block in blocks:
                stacked, _ = stack_module_state(shells)
            self.shells.append(shells[0])
            leaves: Parameters = {at: nn.Parameter(part.detach()) for at, part in stacked.items()}
            self.parameters.append(leaves)

    def priors(self) -> list[Prior]:
        """Returns the priors of all parameters that have one, around zero."""
        return [
            Prior(block, f"mechanism.{name}", tau, tau.new_zeros(self.size, *tau.shape))
            for block, shell in enumerate(self.shells)
            if self.parameters[block]
            for name, tau in shell.mechanism.prior_precision().items()
        ]

    def log_factor(self, parameters: Sequence[Parameters]) -> LogFactor:
        """Returns log φ for all replicates, by the parameters of each block."""

        def evaluate(node: int, own: Tensor, parents: Tensor) -> Tensor | None:
            block = self.block_of[node]
            if not parameters[block]:
                return None

            def one(mine: Parameters) -> Tensor:
                found: Tensor = functional_call(self.shells[block], mine, (own, parents))
                return found

            return vmap(one)(parameters[block])

        return evaluate

    @torch.no_grad()
    def write(self, parameters: Sequence[Parameters], models: Sequence[StructuralModel]) -> None:
        """Writes each replicate's parameters into a model of its own."""
        for block, stacked in enumerate(parameters):
            for replicate, model in enumerate(models):
                shell = LogProb(model.block(block))
                for name, tensor in stacked.items():
                    shell.get_parameter(name).copy_(tensor[replicate])
