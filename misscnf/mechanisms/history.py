r"""A mechanism that reads histories: f(u; h(x_pa)), h the reading of a node (`graph.histories`).

Tied nodes have one mechanism and readings of their own, since each visit has more visits before it
than the one before. Whatever asks a node asks this view of the mechanism, which takes the node's
parents as they are; whatever fits a block asks the mechanism itself, and gives it what it reads.

With a line w · h + …, where h = M x_pa + n(x_pa) for the histories that are linear, such as means,
and n for the others, which are functions of levels and counts,

    w · h = (Mᵀ w) · x_pa + w · n(x_pa),

so that linear-Gaussian mechanisms stay so, and what is hidden of a mean has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from misscnf.data.domains import CONTINUOUS, Binary, Domain
from misscnf.data.scales import Unit
from misscnf.graph.histories import Feature, Reading
from misscnf.mechanisms.base import LinearForm, Mechanism, Mixture

__all__ = ["Remembering", "in_units", "read_domains", "read_parents_by", "reading_matrix"]


def read_parents_by(reading: Reading | None, parents: Tensor) -> Tensor:
    """Returns what a mechanism reads of parents (..., p), (..., f)."""
    if reading is None:
        return parents
    return torch.stack([_feature(feature, parents) for feature in reading.features], -1)


def _feature(feature: Feature, parents: Tensor) -> Tensor:
    if feature.function == "value":
        return parents[..., feature.places[0]]
    x = parents[..., list(feature.places)]
    if feature.function == "mean":
        found = x.mean(-1)
    elif feature.function == "ever":
        found = (x > 0).any(-1).to(x)
    elif feature.function == "count":
        found = (x > 0).sum(-1).to(x)
    else:  # since: zeros from the end on
        found = (x <= 0).flip(-1).to(x).cumprod(-1).sum(-1)
    return (found - feature.location) / feature.scale


def read_domains(reading: Reading | None, domains: Sequence[Domain]) -> tuple[Domain, ...]:
    """Returns the domains of what a mechanism reads, from those of the parents."""
    if reading is None:
        return tuple(domains)
    return tuple(_domain(feature, domains) for feature in reading.features)


def _domain(feature: Feature, domains: Sequence[Domain]) -> Domain:
    if feature.function == "value":
        return domains[feature.places[0]]
    return Binary(0.5, 0.5) if feature.function == "ever" else CONTINUOUS


def reading_matrix(reading: Reading | None, parents: int) -> Tensor:
    """Returns M (f, p), by which linear features come from the parents; zero for others."""
    if reading is None:
        return torch.eye(parents, dtype=torch.float64)
    found = torch.zeros(len(reading), parents, dtype=torch.float64)
    for row, feature in enumerate(reading.features):
        if feature.is_linear:
            found[row, list(feature.places)] = 1.0 / (len(feature.places) * feature.scale)
    return found


def in_units(reading: Reading, units: Sequence[Unit]) -> tuple[Reading, tuple[Unit, ...]] | None:
    """Returns what is read of parents in other units, and the unit of each of its numbers.

    None where a mean is of logarithms or logits, which no mean of other numbers is.
    """
    found = []
    for feature in reading.features:
        unit = units[feature.places[0]]
        if feature.function != "value" and not unit.affine:
            return None
        plain = feature.function == "value" or (feature.location, feature.scale) == (0.0, 1.0)
        found.append(unit if plain else Unit(feature.location, feature.scale))
    return reading.in_raw_numbers(), tuple(found)


class Remembering(Mechanism):
    """A mechanism as a function of all parents of a node, of which it reads histories.

    Arguments:
        law: The mechanism.
        reading: What it reads.
    """

    def __init__(self, law: Mechanism, reading: Reading) -> None:
        super().__init__()
        self.law, self.reading = law, reading

    def _read(self, parents: Tensor) -> Tensor:
        return read_parents_by(self.reading, parents)

    @property
    def domain(self) -> Domain:
        return self.law.domain

    @property
    def noise_size(self) -> int:
        return self.law.noise_size

    @property
    def invertible(self) -> bool:
        return self.law.invertible

    @property
    def tail_index(self) -> float:
        return self.law.tail_index

    @property
    def curve_size(self) -> tuple[int, ...] | None:
        return self.law.curve_size

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | what is read of the parents)."""
        return self.law.log_prob(x, self._read(parents))

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        return self.law.generate(u, self._read(parents))

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        return self.law.noise_map(self._read(parents))

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        return self.law.abduct(x, self._read(parents), generator)

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        return self.law.draw(score, self._read(parents))

    def mixture(self, parents: Tensor) -> Mixture | None:
        return self.law.mixture(self._read(parents))

    def support(self, parents: Tensor, tail: float) -> Tensor:
        return self.law.support(self._read(parents), tail)

    def linear_predictor(self, parents: Tensor) -> Tensor | None:
        return self.law.linear_predictor(self._read(parents))

    def linear_form(self) -> LinearForm | None:
        """Returns the line in the parents, held along all that a bent feature goes over."""
        form = self.law.linear_form()
        if form is None:
            return None
        features = self.reading.features
        size = 1 + max((place for f in features for place in f.places), default=-1)
        matrix = reading_matrix(self.reading, size).to(form.weights)
        apart = [row for row, f in enumerate(features) if not f.is_linear]
        location = form.weights.new_tensor(
            [f.location / f.scale if f.is_linear else 0.0 for f in features]
        )
        held = {place for row in form.held for place in features[row].places}
        slopes = form.slopes

        def offset(parents: Tensor) -> Tensor:
            read = self._read(parents)
            weights = form.weights if slopes is None else form.weights + slopes(read)
            own = read[..., apart] * weights[..., apart].to(read)
            found = own.sum(-1) - (weights * location).sum(-1).to(read)
            return found if form.offset is None else found + form.offset(read)

        def moved(parents: Tensor) -> Tensor:
            assert slopes is not None
            found = slopes(self._read(parents))
            return found @ matrix.to(found)

        plain = form.offset is None and not apart and slopes is None
        return LinearForm(
            form.intercept,
            form.weights @ matrix,
            form.scale,
            None if plain and not bool(location.any()) else offset,
            None if slopes is None else moved,
            tuple(sorted(held)),
        )

    def interact(self, first: int, second: int) -> bool:
        """Says whether some two features, or one that is no line, go over the two parents."""
        features = self.reading.features
        one, two = (
            [row for row, f in enumerate(features) if place in f.places]
            for place in (first, second)
        )
        bent = any(row in two and not features[row].is_linear for row in one)
        return bent or any(self.law.interact(a, b) for a in one for b in two)

    def _value_of(self, parent: int) -> int:
        """Returns the feature that is the value of a parent."""
        alone = ((f.function, f.places) for f in self.reading.features)
        return list(alone).index(("value", (parent,)))

    def slopes_on(self, parent: int) -> Tensor | None:
        return self.law.slopes_on(self._value_of(parent))

    def reflect(self, parent: int | None = None) -> None:
        self.law.reflect(None if parent is None else self._value_of(parent))

    def relabel(self, order: Tensor, parent: int | None = None) -> None:
        self.law.relabel(order, None if parent is None else self._value_of(parent))
