r"""Which interactions a wide family has: terms found one by one, weights shrunk by the evidence.

Where features are many, a Gaussian process in all of them knows nothing anywhere, and most of them
do not matter. Terms are products of up to three factors: a feature, or one side of a knot of it
(`mechanisms.interactions`; Friedman 1991). Starting from a constant, the next term is the product
of one that is in (or of the constant) and one more factor that lowers the squares of what is left
most, once what is in is taken out of it:

    (rᵀ c)² / |c|²  with  c = (I − Q Qᵀ)(term × factor),    Q an orthonormal basis of what is in.

A term has to pay for itself and for the search: with q candidates, n log(RSS before / after) must
exceed log n + 2 log q (Chen and Chen 2008). Terms that are features themselves belong to the line.
The weights of the others, once the line is taken out and each has deviation one, are alike before
rows are seen, N(0, a²); a and the noise are where the evidence is highest (MacKay 1992).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.fitting.settings import Curves
from misscnf.fitting.smooth.evidence import JITTER, line_of
from misscnf.mechanisms import Gaussian, Mechanism
from misscnf.mechanisms.interactions import FACTORS, Factors, Interactions

__all__ = ["Terms", "find_terms"]


@dataclass(frozen=True)
class Terms:
    """All of a curve of interactions but its weights. T terms, r basis functions."""

    factors: Factors
    """(T, FACTORS) of each term"""
    projection: Tensor
    """(T, r)"""
    tilt: Tensor
    """(1 + f, r)"""
    prior_precision: Tensor
    """(r,) precision of the prior of each weight"""
    noise: float = 1.0
    """σ, where the mean of normal noise is meant"""

    @property
    def size(self) -> tuple[int, int]:
        """Terms and basis functions."""
        rows, columns = self.projection.shape
        return rows, columns

    def mechanism(self, parents: Sequence[Domain]) -> Gaussian:
        """Returns a mechanism with these interactions, all weights zero."""
        found = Gaussian(parents, mean_curve=self.size).double()
        self.write(found)
        return found

    @staticmethod
    def of(mechanism: Mechanism) -> Terms | None:
        """Reads the interactions of a mechanism with normal noise; None where it has none."""
        parts = [part for part in mechanism.modules() if isinstance(part, Interactions)]
        mean = mechanism.linear_mean()
        if not parts or mean is None:
            return None
        (part,) = parts
        factors = Factors(part.column, part.knot, part.side, part.floor, part.ceiling)
        noise = float(mean.log_scale(part.tilt[:0]).exp().mean())
        return Terms(factors, part.projection, part.tilt, part.prior_precision, noise)

    def write(self, mechanism: Mechanism) -> None:
        """Puts these interactions under a mechanism that has as many."""
        given = self.factors._asdict()
        for name in ("projection", "tilt", "prior_precision"):
            given[name] = getattr(self, name)
        for part in mechanism.modules():
            if isinstance(part, Interactions):
                for name, value in given.items():
                    getattr(part, name).copy_(value)


@torch.no_grad()
def find_terms(x: Tensor, y: Tensor, rows: int, settings: Curves) -> Terms | None:
    """Returns the interactions that features have on y; None where a line says it all.

    Arguments:
        x: Features (n, f).
        y: (n,)
        rows: The rows of the whole table, N.
        settings: How many knots and terms.
    """
    some = slice(None, None, math.ceil(len(y) / settings.search_rows))
    factors = _search(x[some], y[some], settings)
    if not len(factors.column):
        return None
    raw_basis, line = factors.terms(x), line_of(x)
    root = torch.linalg.cholesky(line.T @ line + JITTER * len(x) * torch.eye(line.shape[1]).to(x))
    tilt = torch.cholesky_solve(line.T @ raw_basis, root)
    bent = raw_basis - line @ tilt
    unit = bent.square().mean(0).sqrt().clamp(min=JITTER)
    strength, turn = torch.linalg.eigh((bent / unit).T @ (bent / unit))
    straight = y - line @ torch.cholesky_solve(line.T @ y[:, None], root)[:, 0]
    pull = turn.T @ ((bent / unit).T @ straight)
    spread, noise = _evidence(strength.clamp(min=0.0), pull, straight, line.shape[1])
    # in units of its posterior error, as those of `basis`: the likelihood is as steep in each
    scale = ((1.0 + strength.clamp(min=0.0) * (spread / noise) ** 2) / rows).sqrt()
    projection = turn / unit[:, None] * spread / scale
    return Terms(factors, projection, tilt @ projection, scale**-2.0, noise)


def _evidence(strength: Tensor, pull: Tensor, y: Tensor, line: int) -> tuple[float, float]:
    """Returns the deviation of the weights and the noise where the evidence is highest.

    Arguments:
        strength: Eigenvalues D of the squares of r basis functions, (r,).
        pull: Their products with y, (r,).
        y: (n,), what the line leaves.
        line: The coefficients of the line.
    """
    variance = noise = max(float(y.square().mean()), JITTER)
    for _ in range(50):
        weight = pull / (strength + noise / variance)
        spent = float((strength / (strength + noise / variance)).sum())
        left = y @ y - 2.0 * weight @ pull + (weight * strength) @ weight
        noise = max(float(left) / max(len(y) - line - spent, 1.0), JITTER)
        variance = max(float(weight @ weight) / max(spent, JITTER), JITTER * noise)
    return math.sqrt(variance), math.sqrt(noise)


class _Library:
    """The factors that terms are made of: every feature, and both sides of its knots.

    A feature with two values has the indicators of both: with a treatment, a term is then of one
    arm alone.
    """

    def __init__(self, x: Tensor, settings: Curves) -> None:
        found, straight = list[tuple[int, float, float, float, float]](), list[bool]()
        for j, feature in enumerate(x.unbind(1)):
            values = feature.unique()
            low, high = float(values[0]), float(values[-1])
            if len(values) > 2:
                found.append((j, 0.0, 1.0, low, high))
                straight.append(True)
            for knot in _knots(feature, values, settings.knots):
                found.append((j, knot, 1.0, 0.0, high - knot))
                found.append((j, knot, -1.0, 0.0, knot - low))
                straight += [len(values) <= 2] * 2
        column, *numbers = zip(*found, strict=True)
        others = (torch.tensor(of, dtype=x.dtype)[:, None] for of in numbers)
        factors = Factors(torch.tensor(column)[:, None], *others)
        shown = factors.terms(x)
        enough = shown.ne(0.0).sum(0) >= settings.term_rows
        self.factors = Factors(*(part[enough] for part in factors))
        self.values, self.column = shown[:, enough], self.factors.column[:, 0]
        """(n, q), and the feature of each factor"""
        self.straight = torch.tensor(straight)[enough]
        """(q,) whether a factor alone is on the line"""

    def of(self, terms: Sequence[tuple[int, ...]]) -> Factors:
        """Returns the factors of some terms, (T, FACTORS), filled up with ones."""
        empty = Factors.ones(len(terms), self.factors.knot)
        for place, term in enumerate(terms):
            for at, which in enumerate(term):
                for mine, its in zip(empty, self.factors, strict=True):
                    mine[place, at] = its[which, 0]
        return empty


def _knots(feature: Tensor, values: Tensor, most: int) -> list[float]:
    """Returns where terms may bend: both of two values, the inner ones of few, or quantiles."""
    if len(values) <= 2:
        return values.tolist()
    if len(values) <= most + 2:
        return values[1:-1].tolist()
    shares = torch.linspace(0.0, 1.0, most + 2, dtype=feature.dtype)[1:-1]
    return feature.quantile(shares).unique().tolist()


class _Pursuit:
    """Orthogonal matching pursuit: which products of stems and factors say most of what is left.

    A stem is one, or a term that is in. Products are never held, only what they have in common
    with what is in and what is left, which are matrix products.

    Arguments:
        library: The factors.
        y: (n,)
        settings: When a term is too rare, or too like the others.
    """

    def __init__(self, library: _Library, y: Tensor, settings: Curves) -> None:
        self.library, self.settings = library, settings
        self.left = y - y.mean()
        one = torch.ones_like(y)[:, None]
        self.basis = one / math.sqrt(len(y))
        """(n, b) what is in, orthonormal"""
        self.stems, self.names = one[:, :0], list[tuple[int, ...]]()
        """(n, s), and the factors of each"""
        none = library.values.new_zeros(library.values.shape[1], 0)
        self.size, self.new, self.open = none, none, none.bool()
        """(q, s) |term × factor|² and |c|² of each product, and whether it may be a term"""
        self._grow(one, ())

    def _grow(self, stem: Tensor, name: tuple[int, ...]) -> None:
        """Makes products with one more stem (n, 1) candidates."""
        values, column = self.library.values, self.library.column
        size = values.square().T @ stem.square()
        new = size - (values.T @ (stem * self.basis)).square().sum(1, keepdim=True)
        often = ((values != 0.0).to(stem).T @ (stem != 0.0).to(stem)) >= self.settings.term_rows
        fits = often[:, 0] & ~torch.isin(column, column[list(name)])
        self.size = torch.cat([self.size, size], 1)
        self.stems, self.names = torch.cat([self.stems, stem], 1), [*self.names, name]
        self.new = torch.cat([self.new, new], 1)
        self.open = torch.cat([self.open, fits[:, None]], 1)

    def next(self) -> tuple[int, ...] | None:
        """Takes the best term in and returns its factors; None where none pays for itself."""
        values, n = self.library.values, len(self.left)
        fits = self.open & (self.new > self.settings.least_new * self.size)
        total = float(self.left.square().sum())
        if not fits.any() or not total:
            return None
        pull = values.T @ (self.stems * self.left[:, None])
        gain = torch.where(fits, pull.square() / self.new.clamp(min=1e-12), 0.0)
        factor, stem = divmod(int(gain.argmax()), gain.shape[1])
        share = min(float(gain[factor, stem]) / total, 1.0 - 1e-12)
        if -n * math.log1p(-share) < math.log(n) + 2.0 * math.log(int(fits.sum())):
            return None
        name, term = (*self.names[stem], factor), self.stems[:, [stem]] * values[:, [factor]]
        new = term
        for _ in range(2):  # the second takes out what rounding left
            new = new - self.basis @ (self.basis.T @ new)
        new = new / new.norm()
        self.left = self.left - new[:, 0] * (new[:, 0] @ self.left)
        self.new = self.new - (values.T @ (self.stems * new)).square()
        self.basis = torch.cat([self.basis, new], 1)
        if len(name) < FACTORS:
            self._grow(term, name)
        return name


def _search(x: Tensor, y: Tensor, settings: Curves) -> Factors:
    """Returns the terms that pay for themselves, but for those on the line."""
    library = _Library(x, settings)
    pursuit, found = _Pursuit(library, y, settings), list[tuple[int, ...]]()
    for _ in range(settings.most_terms):
        term = pursuit.next()
        if term is None:
            break
        if len(term) > 1 or not library.straight[term[0]]:
            found.append(term)
    return library.of(found)
