r"""The shape of mechanisms: which law continuous nodes get, and how rich its parts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from misscnf.data.domains import Continuous, Domain
from misscnf.mechanisms.base import Mechanism
from misscnf.mechanisms.encoding import Parents, read_parents

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """The mechanism that a node gets, according to what its values can be."""

    kind: str = "gaussian"
    """What continuous nodes get, by its name: "gaussian", "spline" or "affine"."""
    hidden: tuple[int, ...] = (64, 64, 64)
    """Hidden widths of the network of means or logits; none makes them linear."""
    scale_hidden: tuple[int, ...] | None = None
    """Hidden widths of the network of scales, and of the spacings of levels; None makes them
    constant."""
    activation: Literal["silu", "relu"] = "silu"
    """The activation of all networks."""
    curve: tuple[int, ...] | None = None
    """Centres, products and basis functions of the curve of a continuous node's mean; None for
    none."""

    def build(self, parents: Parents, domain: Domain | None = None) -> Mechanism:
        """Makes the mechanism of a node.

        Arguments:
            parents: The domains of its parents, or their number.
            domain: What its values can be; continuous by default.
        """
        domain = domain or Continuous()
        law = Mechanism.by_kind.get(domain.kind) or Mechanism.registry[self.kind]
        return law.of_shape(read_parents(parents), domain, self)
