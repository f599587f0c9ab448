r"""Forms of a mechanism: how rich each node's is.

    x = m(x_pa) + s(x_pa) · h(u):    m a line, a curve or a network,
                                     s a constant or a network,
                                     h the identity or a monotone spline.

Everything starts as the linear model. Blocks that are more than a line by a score test
(`nonlinearity`) ask for a curve of the mean, or a network of the mean or the logits (`means`).
Once these are fitted, blocks whose noise looks odd ask for a network of the scale, for a spline,
or for both (`noise`). Rows that were left out decide each time (`crossfit`): a richer form must
beat a plainer one by z standard errors of the elpd difference, a larger z where another that could
see as much does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from misscnf.draws import derive_generator
from misscnf.mechanisms import Mechanism, Shape
from misscnf.model import StructuralModel, Structure
from misscnf.options import from_dict, to_dict

__all__ = ["Form", "build_model", "with_mechanisms"]


@dataclass(frozen=True)
class Form:
    """How rich the mechanism of a node is."""

    mean: bool = False
    """whether a network sets the mean, or the logits"""
    scale: bool = False
    """whether a network sets the scale"""
    noise: bool = False
    """whether the noise goes through a spline"""
    curve: tuple[int, ...] | None = None
    """centres, products and basis functions, where a curve sets the mean; terms and basis
    functions, where products of parents stand beside a line"""

    def shape(self, full: Shape, scale_hidden: tuple[int, ...] = (32, 32)) -> Shape:
        """Returns the shape of the mechanism; `full` is that of a node with a network."""
        shape = full if self.mean else replace(full, hidden=(), scale_hidden=None)
        if self.curve:
            shape = replace(shape, curve=self.curve)
        if self.scale:
            shape = replace(shape, scale_hidden=scale_hidden)
        return replace(shape, kind="spline") if self.noise else shape

    @property
    def name(self) -> str:
        """The form in words, such as "network, spline noise"."""
        words = ["network" if self.mean else self._solved]
        return ", ".join(words + ["network scale"] * self.scale + ["spline noise"] * self.noise)

    def __str__(self) -> str:
        return self.name

    @property
    def richness(self) -> Literal["linear", "curve", "network"]:
        """In one word; networks and splines are both fitted by training."""
        if self.mean or self.scale or self.noise:
            return "network"
        return "curve" if self._solved == "curve" else "linear"

    @property
    def interactions(self) -> bool:
        """Whether products of parents stand beside the line."""
        return self.curve is not None and len(self.curve) == 2

    @property
    def _solved(self) -> str:
        if self.interactions:
            return "line with interactions"
        return "curve" if self.curve else "line"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Form:
        """Reads what `to_dict` wrote."""
        return from_dict(cls, entry)


def build_model(
    structure: Structure,
    shapes: Shape | Sequence[Shape],
    start: StructuralModel | None = None,
    seed: int | None = None,
) -> StructuralModel:
    """Makes a model, with the parameters of a simpler one where it has the same.

    Arguments:
        structure: The graph, its domains and ties.
        shapes: The shape of its mechanisms, of all blocks or of each.
        start: The simpler model, or None.
        seed: Where the hidden layers come from; None leaves them zero.
    """
    model = structure.build(shapes)
    if seed is not None:
        model.initialise(derive_generator(seed, "initialise"))
    if start is not None:
        for block in range(len(model.blocks)):
            model.block(block).start_from(start.block(block))
    return model


def with_mechanisms(model: StructuralModel, others: Mapping[int, Mechanism]) -> StructuralModel:
    """Returns a model with other mechanisms in the place of some of its own, by block."""
    return model.like([others.get(b, model.block(b)) for b in range(len(model.blocks))])
