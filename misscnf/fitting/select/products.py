r"""Products of two parents beside a line: groups may differ, as far as rows say so.

A line gives everybody the same effect. Lines therefore keep the products of each parent that has
few levels with every other, whatever a test says of them: a question about
groups must be put to the rows, and its interval must know what they leave open. What the line
could say by itself is taken out of a product h, so that the effect in all is what it was, and a
pair of parents has weights of its own size, γ ~ N(0, τ²), shrunk by what the rows say:

    log p(rows | τ) ≈ ½ Uᵀ (I + τ⁻²)⁻¹ U − ½ log |1 + τ² I|,      log τ ~ N(log τ₀, ς²),

the evidence near the line, with U the score of the products at γ = 0 and I its square (`scores`,
which is of the likelihood of all that rows show). τ₀ is a share of the noise: c / √(what one row
knows of γ). Nothing is chosen, so that no interval leaves a choice out. Curves and networks then
have to beat the line with its products (`means`).

Where logits or a log-mean are meant, closed forms are not lost and any two parents have a product;
those of two numbers are a curve's business where noise is normal.

A product of levels that go together in (almost) all rows is (almost) the line. What little is left
of it, brought to the size of one, is thousands where they do not go together: no row is there, but
draws may be. In units of its root mean square, the only row with a combination has √N; a product
that is far beyond at an end of its factors is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import torch
from torch import Tensor

from misscnf.fitting.completions import Cells
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.nonlinearity import straight, times
from misscnf.fitting.select.scores import ScoreTests, blankets
from misscnf.fitting.settings import Products
from misscnf.fitting.smooth.evidence import JITTER
from misscnf.fitting.smooth.interactions import Terms
from misscnf.mechanisms import Mechanism, Shape
from misscnf.mechanisms.interactions import Factors
from misscnf.model import StructuralModel

__all__ = ["with_products"]


@dataclass(frozen=True)
class _Candidates:
    """Products of features of a family; those of one pair of parents are one group."""

    first: Tensor
    """(q,) the features that are multiplied"""
    second: Tensor
    """(q,)"""
    pair: Tensor
    """(q,) the number of the pair of parents"""

    @staticmethod
    def of(line: Mechanism, given: Given, block: int) -> _Candidates:
        """Returns those that a line may have."""
        domains, few = given.structure.parents_of(block), given.settings.products.few_levels
        any_two = not line.normal_noise  # two numbers are a curve's business there
        levelled = [d.states is not None and d.states <= few for d in domains]
        places, start = [], 0
        for domain in domains:
            places.append(range(start, start + domain.features))
            start += domain.features
        found = [
            (i, j, number)
            for number, (a, b) in enumerate(combinations(range(len(domains)), 2))
            if any_two or levelled[a] or levelled[b]
            for i, j in product(places[a], places[b])
        ]
        columns = torch.tensor(found, dtype=torch.int64).reshape(-1, 3)
        return _Candidates(*columns.unbind(1))

    def select(self, some: Tensor) -> _Candidates:
        """Returns some of them."""
        return _Candidates(self.first[some], self.second[some], self.pair[some])

    def values(self, features: Tensor, centre: Tensor) -> Tensor:
        """Returns the products at features (n, f), (n, q)."""
        around = features - centre
        return around[:, self.first] * around[:, self.second]

    def farthest(self, features: Tensor, centre: Tensor, tilt: Tensor) -> Tensor:
        """Returns how far from zero they are where both factors end, (q,).

        That is less the line `tilt` (1 + f, q), with all other features at the centre.
        """
        ends = torch.stack([features.amin(0), features.amax(0)]) - centre
        number = torch.arange(len(self.pair))
        at_centre = tilt[0] + centre @ tilt[1:]
        along = tilt[1:][self.first, number], tilt[1:][self.second, number]
        corners = [
            a * b - (at_centre + along[0] * a + along[1] * b)
            for a, b in product(ends[:, self.first], ends[:, self.second])
        ]
        return torch.stack(corners).abs().amax(0)

    def factors(self, centre: Tensor) -> Factors:
        """Returns the factors of each term."""
        found = Factors.ones(len(self.first), centre)
        for at, feature in enumerate((self.first, self.second)):
            found.column[:, at], found.knot[:, at], found.side[:, at] = feature, centre[feature], 1
            found.floor[:, at], found.ceiling[:, at] = -math.inf, math.inf
        return found


@torch.no_grad()
def with_products(
    line: StructuralModel, given: Given, blocks: Collection[int] | None = None
) -> Mapping[int, Mechanism]:
    """Returns lines with products of their parents, weights still zero, by block.

    Arguments:
        line: The linear fit to all rows.
        given: Structure, rows, settings and seed.
        blocks: Which blocks are asked; all that may have products if None.
    """
    settings, structure = given.settings.products, given.structure
    if not settings.keep or given.settings.shape.kind != "gaussian":
        return {}
    asked = range(len(line.blocks)) if blocks is None else sorted(blocks)
    growing = [b for b in asked if "products" in line.block(b).growths]
    growing = [b for b in growing if structure.may_grow(b) and not given.wide(b)]
    candidates = {b: _Candidates.of(line.block(b), given, b) for b in growing}
    candidates = {b: some for b, some in candidates.items() if len(some.pair)}
    if not candidates:
        return {}
    around = set[int]().union(*(blankets(line)[block] for block in candidates))
    tests = ScoreTests(line, given.complete(line, "products"), sorted(around), straight)
    found = dict[int, Mechanism]()
    for block, some in candidates.items():
        terms = _terms(some, tests, block, len(given.rows), settings)
        if terms is not None:
            shape = Shape(hidden=(), curve=terms.size)
            law = shape.build(structure.parents_of(block), structure.domain_of(block)).double()
            law.start_from(line.block(block))
            terms.write(law)
            found[block] = law
    return found


def _terms(
    candidates: _Candidates, tests: ScoreTests, block: int, rows: int, settings: Products
) -> Terms | None:
    """Returns the products of a block with the priors that its rows ask for; None for none."""
    model, nodes = tests.model, tests.model.blocks[block]
    cells = [tests.families.nodes[node] for node in nodes]
    features = model.block(block).features(torch.cat([cell.parents for cell in cells]))
    share = torch.cat([cell.shares() for cell in cells])[:, None]
    total = share.sum().clamp(min=1.0)
    centre = (share * features).sum(0) / total
    line = torch.cat([torch.ones_like(features[:, :1]), features], 1)
    said = line.T @ (share * line) + JITTER * total * torch.eye(line.shape[1]).to(line)
    raw = candidates.values(features, centre)
    tilt = torch.linalg.solve(said, line.T @ (share * raw))
    unit = ((share * (raw - line @ tilt).square()).sum(0) / total).sqrt()
    size = ((share * raw.square()).sum(0) / total).sqrt()
    new = unit > settings.least_new * size.clamp(min=JITTER)
    away = candidates.farthest(features, centre, tilt)
    new &= away <= settings.farthest * math.sqrt(rows) * unit
    if not new.any():
        return None
    candidates, tilt, unit = candidates.select(new), tilt[:, new], unit[new]

    def bent(mechanism: Mechanism, cells: Cells) -> Tensor:
        x = mechanism.features(cells.parents)
        h = (candidates.values(x, centre) - tilt[0] - x @ tilt[1:]) / unit
        return times(mechanism.line_scores(cells.own, cells.parents), h)

    left = tests.left(block, bent).rows.reshape(tests.rows, -1, len(unit))
    spread, information, gain = (
        torch.ones_like(unit),
        torch.ones_like(unit),
        torch.zeros_like(unit),
    )
    for pair in candidates.pair.unique():
        mine = candidates.pair == pair
        of_pair = left[:, :, mine].flatten(1)
        squares = of_pair.square().sum(0).reshape(-1, int(mine.sum()))
        spread[mine], gain[mine] = _spread(of_pair, rows, settings)
        information[mine] = squares.mean(0)
    best = gain.argsort(descending=True, stable=True)[: settings.most]
    keep = torch.zeros_like(new[new]).index_fill(0, best, value=True)
    candidates, tilt, unit = candidates.select(keep), tilt[:, keep], unit[keep]
    spread, information = spread[keep], information[keep]
    # in units of its posterior error, as in `smooth.basis`: the likelihood is as steep in each
    scale = ((1.0 + information * spread.square()) / rows).sqrt()
    projection = (spread / scale / unit).diag()
    return Terms(candidates.factors(centre), projection, tilt @ projection, scale**-2.0)


def _spread(left: Tensor, rows: int, settings: Products) -> tuple[float, float]:
    """Returns τ where evidence and prior are highest, and the evidence there.

    Arguments:
        left: Scores of a pair's products less what the line could have moved, (N, q).
        rows: N.
        settings: The prior of τ.
    """
    strength, turn = torch.linalg.eigh(left.T @ left)
    strength, pull = strength.clamp(min=0.0), (turn.T @ left.sum(0)).square()
    centre = settings.spread / math.sqrt(max(float(strength.mean()) / rows, JITTER))
    away = torch.linspace(-4.0, 4.0, 161, dtype=left.dtype) * settings.log_spread
    variance = (centre * away.exp()).square()[:, None]
    evidence = 0.5 * pull / (strength + 1.0 / variance) - 0.5 * torch.log1p(variance * strength)
    value = evidence.sum(1) - 0.5 * (away / settings.log_spread).square()
    best = int(value.argmax())
    return float(variance[best, 0].sqrt()), float(value[best])
