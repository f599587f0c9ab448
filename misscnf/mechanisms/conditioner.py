r"""How parents set the parameters of a mechanism: a straight line, and a nonlinearity.

    parameters = bias + W x_pa + network(x_pa)      or      bias + W x_pa + curve(x_pa)

Discrete parents enter as the numbers of `encoding`. The last layer of the network starts at zero,
so that every mechanism starts as its linear part and the network only has to learn what the line
leaves over. A curve has fewer degrees of freedom: for what is smooth (`curve`), for few products
of many features (`interactions`), and where rows are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from misscnf.mechanisms.curve import Curve
from misscnf.mechanisms.encoding import Encoding, Parents, read_parents
from misscnf.mechanisms.interactions import Interactions

__all__ = ["Conditioner", "ACTIVATIONS", "ROWS_AT_ONCE", "soft_bound"]

ACTIVATIONS = {"relu": functional.relu, "silu": functional.silu}

ROWS_AT_ONCE = 4096
"""Without gradients, long inputs go through a network in pieces that stay in the cache."""


LOG_SCALE_BOUND = 7.0
"""A network's log-scale stays within ±7, so that far from the data a scale is neither 0 nor ∞."""


def soft_bound(s: Tensor, bound: float) -> Tensor:
    """Squashes s into (−bound, bound) with slope one at zero."""
    return s / (1.0 + s.abs() / bound)


class Conditioner(nn.Module):
    """Maps parents (..., p) to parameters (..., outputs).

    Arguments:
        parents: The domains of the p parents, or their number. With none, the parameters are
            constants.
        outputs: The number of parameters.
        hidden: Widths of the hidden layers; () makes the map linear, None constant.
        activation: A name in `ACTIVATIONS`.
        skip: Whether the linear part stands beside the network.
        curve: Of a curve beside the line: centres, products and basis functions, or terms and
            basis functions of interactions; None for none.

    Example:
        >>> line = Conditioner(2, outputs=1)
        >>> line.start_slopes(0.5)
        >>> line(torch.tensor([[1.0, 3.0]])).tolist()  # 0.5 of each
        [[2.0]]
    """

    def __init__(
        self,
        parents: Parents,
        outputs: int,
        hidden: Sequence[int] | None = (),
        *,
        activation: str = "silu",
        skip: bool = True,
        curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.encoding = Encoding(() if hidden is None else read_parents(parents))
        features = self.features = self.encoding.features
        self.constant = not features
        self.hidden = tuple(hidden or ()) if features else ()
        self.activation = ACTIVATIONS[activation]
        self.bias = nn.Parameter(torch.zeros(outputs))
        line = torch.zeros(outputs, features)
        self.weight = nn.Parameter(line) if features and (skip or not self.hidden) else None
        widths = (features, *self.hidden)
        self.weights = nn.ParameterList(
            torch.zeros(wide, narrow) for narrow, wide in zip(widths, self.hidden, strict=False)
        )
        self.biases = nn.ParameterList(torch.zeros(wide) for wide in self.hidden)
        last = torch.zeros(outputs, widths[-1])
        self.last = nn.Parameter(last) if self.hidden else None
        self.skip = skip
        self.curve: Curve | Interactions | None = None
        if curve and features:
            kind = Interactions if len(curve) == 2 else Curve
            self.curve = kind(features, outputs, *curve)

    @property
    def is_line(self) -> bool:
        """Whether there is nothing but a line."""
        return not self.hidden and self.curve is None

    def interact(self, first: int, second: int) -> bool:
        """Says whether what one parent adds may depend on another."""
        if self.constant or self.is_line:
            return False
        places = self.encoding.places
        return bool(self.hidden) or (
            self.curve is not None and self.curve.interact(places[first], places[second])
        )

    def affine_in(self, moving: Sequence[int]) -> bool:
        """Says whether, with other parents held, there is a line in the parents that move."""
        columns = [column for parent in moving for column in self.encoding.places[parent]]
        return not self.hidden and (self.curve is None or self.curve.affine_in(columns))

    def start_slopes(self, slope: float, parent: int | None = None) -> None:
        """Sets the slopes of the line in one parent, or in all, to one number."""
        if self.weight is not None:
            places = slice(None) if parent is None else list(self.encoding.places[parent])
            with torch.no_grad():
                self.weight[:, places] = slope

    def slope(self, parent: int) -> float:
        """Returns the slope of the line in the first feature of a parent."""
        assert self.weight is not None
        return float(self.weight.detach()[0, self.encoding.places[parent][0]])

    @torch.no_grad()
    def start_wider(self, line: Conditioner, parents: Sequence[int]) -> None:
        """Takes over a line in some of the parents, named in its order; other slopes are zero."""
        self.bias.copy_(line.bias)
        if self.weight is not None:
            self.weight.zero_()
            for its, mine in enumerate(parents if line.weight is not None else ()):
                assert line.weight is not None
                places = list(self.encoding.places[mine])
                self.weight[:, places] = line.weight[:, list(line.encoding.places[its])]

    @torch.no_grad()
    def start_narrower(self, line: Conditioner, parents: Sequence[int]) -> None:
        """Takes over what a line says of some of its parents, named in the order of these."""
        self.bias.copy_(line.bias)
        if self.weight is not None and line.weight is not None:
            places = [at for parent in parents for at in line.encoding.places[parent]]
            self.weight.copy_(line.weight[:, places])

    @torch.no_grad()
    def reflect(self, parent: int) -> None:
        """Reads a parent with the other sign from now on, where there is nothing but a line."""
        assert self.weight is not None
        assert self.is_line
        self.weight[:, list(self.encoding.places[parent])] *= -1.0

    @torch.no_grad()
    def relabel(self, parent: int, order: Tensor) -> None:
        """Reads a categorical parent with its levels in another order: now the old order[k]."""
        assert self.weight is not None
        assert self.is_line
        places = list(self.encoding.places[parent])
        slopes = functional.pad(self.weight[:, places], (1, 0))[:, order]
        self.bias.add_(slopes[:, 0])
        self.weight[:, places] = slopes[:, 1:] - slopes[:, :1]

    def initialise(self, generator: Generator) -> None:
        """Draws the hidden layers, U(±1/√fan-in); the last stays zero beside a linear part."""
        layers = list(zip(self.weights, self.biases, strict=True))
        if self.last is not None and not self.skip:
            layers.append((self.last, self.bias))
        with torch.no_grad():
            for weight, bias in layers:
                bound = 1.0 / math.sqrt(weight.shape[1])
                for parameter in (weight, bias):
                    uniform = torch.rand(parameter.shape, generator=generator, dtype=torch.float32)
                    parameter.copy_((2.0 * uniform - 1.0) * bound)

    def bounded(self, parents: Tensor) -> Tensor:
        """Returns the parameters as log-scales: a constant as it is, others within ±7."""
        out: Tensor = self(parents)
        return out if self.constant else soft_bound(out, LOG_SCALE_BOUND)

    def forward(self, parents: Tensor) -> Tensor:
        """Returns the parameters, (outputs,) for constants and (..., outputs) otherwise."""
        if self.constant:
            return self.bias
        features = self.encoding(parents)
        if self.is_line:
            assert self.weight is not None
            return functional.linear(features, self.weight, self.bias)
        most = self._rows_at_once
        if not torch.is_grad_enabled() and features.numel() > most * self.features:
            pieces = features.reshape(-1, self.features).split(most)
            out = torch.cat([self._nonlinear(piece) for piece in pieces])
            return out.reshape(*features.shape[:-1], -1)
        return self._nonlinear(features)

    @property
    def _rows_at_once(self) -> int:
        """Rows of a piece: longer ones where few products take less cache than a network."""
        if self.hidden or not isinstance(self.curve, Interactions):
            return ROWS_AT_ONCE
        return ROWS_AT_ONCE * max(1, 64 // max(1, self.curve.size[0]))

    def _nonlinear(self, features: Tensor) -> Tensor:
        weight, bias, curve = self.weight, self.bias, self.curve
        if curve is None:
            out = bias if self.last is None else self._network(features, self.last)
            return out if weight is None else out + functional.linear(features, weight)
        # What a curve takes out of its basis functions is a line as well: one line for both.
        of_basis, of_line = curve.weights()
        line = -of_line[1:].T if weight is None else weight - of_line[1:].T
        out = functional.linear(features, line, bias - of_line[0])
        out = out + curve.weighed(features, of_basis)
        return out if self.last is None else out - bias + self._network(features, self.last)

    def _network(self, features: Tensor, last: Tensor) -> Tensor:
        h = features
        for weight, bias in zip(self.weights, self.biases, strict=True):
            h = self.activation(functional.linear(h, weight, bias))
        return functional.linear(h, last, self.bias)
