r"""The law of a hidden number: x = w · x_pa + u, with nothing else to learn.

Rows never show it, so they cannot tell its location, its scale or its sign: what its children add
and multiply takes any change of these back. The location is pinned by having no intercept, the
scale by noise of variance one. The sign is left to the fit, which turns it so that the first child
grows with it (`fitting.solve.anchors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor, nn

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import LinearForm, Mechanism, Shape, standard_normal_log_prob
from misscnf.mechanisms.encoding import Encoding, Parents, read_parents

__all__ = ["Latent"]


class Latent(Mechanism, name="latent", serves=("latent",)):
    """x = w · x_pa + u with u ~ N(0, 1).

    Arguments:
        parents: The domains of the parents, or their number.

    Example:
        >>> import torch
        >>> law = Latent(1)
        >>> x, parent = torch.tensor([0.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # N(0; 0, 1)
        0.3989
    """

    scale: Tensor

    def __init__(self, parents: Parents) -> None:
        super().__init__()
        self.parents = read_parents(parents)
        self.encoding = Encoding(self.parents)
        features = self.encoding.features
        self.weight = nn.Parameter(torch.zeros(features)) if features else None
        # A root has no parameter that would say its dtype and device.
        self.register_buffer("scale", torch.ones(()), persistent=False)

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents)

    @property
    def domain(self) -> Domain:
        return domains.Latent()

    def location(self, parents: Tensor) -> Tensor:
        """Returns w · x_pa, (...); () where there are no parents."""
        if self.weight is None:
            return parents.new_zeros(())
        return self.encoding(parents) @ self.weight.to(parents)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log N(x − w · x_pa; 0, 1)."""
        return standard_normal_log_prob(x - self.location(parents))

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns w · x_pa + u."""
        return self.location(parents) + u

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Computes w · x_pa once."""
        location = self.location(parents)
        return lambda u: location + u

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns x − w · x_pa."""
        return x - self.location(parents)

    def linear_form(self) -> LinearForm | None:
        """Returns the line, where continuous parents enter as they are."""
        one = self.scale
        reference = one.new_zeros(0) if self.weight is None else self.weight
        none = torch.zeros_like(one)
        if not self.encoding.linear:
            return None
        if self.encoding.plain:
            return LinearForm(none, reference, one)
        weights, of_discrete = self.encoding.split(reference)
        return LinearForm(
            none, weights, one, lambda parents: self.encoding(parents) @ of_discrete.to(parents)
        )

    def features(self, parents: Tensor) -> Tensor:
        return self.encoding(parents)

    def basis(self, parents: Tensor) -> Tensor:
        return self.encoding(parents)

    def slopes_on(self, parent: int) -> Tensor | None:
        assert self.weight is not None
        return self.weight.detach()[list(self.encoding.places[parent])]

    @torch.no_grad()
    def reflect(self, parent: int | None = None) -> None:
        places = range(self.encoding.features) if parent is None else self.encoding.places[parent]
        if self.weight is not None:
            self.weight[list(places)] *= -1.0

    def start_unseen(self, slope: float, parent: int | None = None) -> None:
        if self.weight is not None:
            nn.init.constant_(self.weight, slope)

    def set_line(self, intercept: float, weights: Sequence[float], scale: float) -> None:
        """Sets the slopes; the intercept is zero and the scale one, whatever is given."""
        if self.weight is not None:
            with torch.no_grad():
                self.weight.copy_(torch.as_tensor(weights, dtype=torch.float64))
