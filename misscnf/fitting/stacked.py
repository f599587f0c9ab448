r"""B sets of parameters of one structural model, stacked: evaluated, and moved, together.

An optimiser that works element by element does not mix them, so that B fits cost little more than
one wherever tensors are small.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from misscnf.fitting.completions import LogFactor, LogProb
from misscnf.mechanisms import Curve
from misscnf.model import StructuralModel

__all__ = ["Ensemble", "Parameters"]

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class _Prior:
    """The prior of the weights of one node's curve, in all replicates."""

    node: int
    name: str
    prior_precision: Tensor
    """(basis functions,)"""
    centre: Tensor
    """(B, outputs, basis functions)"""

    def log_prob(self, parameters: list[Parameters]) -> Tensor:
        """Returns the log-densities of the weights, up to constants, added up, ()."""
        away = parameters[self.node][self.name] - self.centre
        return -0.5 * (self.prior_precision * away.square()).sum()


class Ensemble:
    """B sets of parameters of one structural model.

    Arguments:
        models: The B models, of the same shape.
        nodes: The nodes that are evaluated; None for all.
    """

    def __init__(
        self, models: Sequence[StructuralModel], nodes: Collection[int] | None = None
    ) -> None:
        self.size = len(models)
        self.shells: list[LogProb] = []
        self.parameters: list[Parameters] = []
        """Of each node, by name, with the replicates along the first axis."""
        for node in range(len(models[0].graph)):
            shells = [LogProb(model.mechanism(node)) for model in models]
            stacked: Parameters = {}
            if nodes is None or node in nodes:
                stacked, _ = stack_module_state(shells)
            self.shells.append(shells[0])
            self.parameters.append(
                {name: tensor.detach().requires_grad_() for name, tensor in stacked.items()}
            )

    def priors(self) -> list[_Prior]:
        """Returns the priors of all curves, around zero."""
        found = []
        for node, (shell, stacked) in enumerate(zip(self.shells, self.parameters, strict=True)):
            for path, part in shell.named_modules():
                name = f"{path}.weight"
                if isinstance(part, Curve) and name in stacked:
                    centre = torch.zeros_like(stacked[name], requires_grad=False)
                    found.append(_Prior(node, name, part.prior_precision, centre))
        return found

    def log_factor(self, parameters: list[Parameters]) -> LogFactor:
        """Returns log φ as a function of node, own values and parents, for all replicates."""

        def evaluate(node: int, own: Tensor, parents: Tensor) -> Tensor | None:
            if not parameters[node]:
                return None

            def one(mine: Parameters) -> Tensor:
                found: Tensor = functional_call(self.shells[node], mine, (own, parents))
                return found

            return vmap(one)(parameters[node])

        return evaluate

    def write(self, parameters: list[Parameters], models: Sequence[StructuralModel]) -> None:
        """Writes each replicate's parameters into a model of its own."""
        with torch.no_grad():
            for node, stacked in enumerate(parameters):
                for replicate, model in enumerate(models):
                    shell = LogProb(model.mechanism(node))
                    for name, tensor in stacked.items():
                        shell.get_parameter(name).copy_(tensor[replicate])
