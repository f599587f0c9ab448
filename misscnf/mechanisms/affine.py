r"""The paper's mechanism: u = μ(x_pa) + exp(s(x_pa)) x, both from one network.

Appendix "Causal normalizing flows": an abductive affine map whose shift and log-scale come from
two hidden layers of 64 ReLU units. The public library deals its 64 units out among the nodes of
one masked network; here every node has a network of its own of these sizes. As there, the
log-scale is softly bounded by log 1000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Mechanism, Shape, standard_normal_log_prob
from misscnf.mechanisms.conditioner import Conditioner, soft_bound
from misscnf.mechanisms.encoding import Parents, read_parents

__all__ = ["Affine"]


class Affine(Mechanism, name="affine"):
    """u = μ(x_pa) + exp(s(x_pa)) x with u ~ N(0, 1).

    Arguments:
        parents: The domains of the parents, or their number.
        hidden: Hidden widths of the network.
        activation: Its activation.

    Example:
        >>> import torch
        >>> law = Affine(1)  # before any training u = x
        >>> law.abduct(torch.tensor([2.0]), torch.zeros(1, 1)).tolist()
        [2.0]
    """

    def __init__(
        self, parents: Parents, hidden: Sequence[int] = (64, 64), activation: str = "relu"
    ) -> None:
        super().__init__()
        self.parents, self.activation = read_parents(parents), activation
        self.conditioner = Conditioner(self.parents, 2, hidden, activation=activation, skip=False)
        self.hidden = self.conditioner.hidden

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents, shape.hidden, shape.activation)

    def shift_and_log_slope(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Returns μ(x_pa) and s(x_pa)."""
        shift, log_slope = self.conditioner(parents).unbind(-1)
        return shift, soft_bound(log_slope, math.log(1e3))

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log N(u; 0, 1) + s."""
        shift, log_slope = self.shift_and_log_slope(parents)
        return standard_normal_log_prob(shift + torch.exp(log_slope) * x) + log_slope

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns (u − μ) / exp(s)."""
        shift, log_slope = self.shift_and_log_slope(parents)
        return (u - shift) * torch.exp(-log_slope)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns μ + exp(s) x."""
        shift, log_slope = self.shift_and_log_slope(parents)
        return shift + torch.exp(log_slope) * x

    @property
    def solvable(self) -> bool:
        """Never: it is trained as the paper trains it."""
        return False
