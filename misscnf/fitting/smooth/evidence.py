r"""The prior of a curve: the evidence chooses it, from the rows that show a family whole.

Of y = b + W x + c(x) + σ s u, with c a Gaussian process and s known for each row (one, unless a
network has learned it),

    Cov[c(x), c(x')] = a² exp(−½ Σ_j (x_j − x'_j)² / ℓ_j²) + (Σ_j β_j² x_j x'_j)²,

the amplitude a, the length scales ℓ, the curvatures β and σ maximise the marginal likelihood, M
of the rows standing as centres z for the first term,

    log N(y; 0, Φ Φᵀ + σ² S²) − Σ_i (a² − |Φ_c,i|²) / 2 σ² s_i²,

the last part being the price of what M centres cannot say (Titsias 2009). Φ_c holds the basis
functions a K_xz K_zz^(−1/2), and Φ the line and the products x_i x_j beside them. Long length
scales are cheap, and a parabola costs next to nothing: a curve spends a few degrees of freedom
where a network spends twenty.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from misscnf.fitting.settings import Curves
from misscnf.fitting.solve.quasi_newton import maximise
from misscnf.mechanisms.curve import extended_products

__all__ = ["JITTER", "Prior", "radial_basis_of", "choose_prior", "line_of", "products_of"]
__all__ += ["spread_centres"]

JITTER = 1e-6
"""Added to a matrix of radial basis functions, against rounding."""


class Prior:
    """What the evidence chooses, read from the vector of its logarithms.

    Arguments:
        theta: Logarithms of the amplitude, of the f length scales, the curvatures and the noise.
        sizes: How many there are of each.
    """

    def __init__(self, theta: Tensor, sizes: list[int]) -> None:
        amplitude, length_scale, curvature, noise = theta.exp().split(sizes)
        self.amplitude, self.noise = amplitude[0], noise[0]
        self.length_scale, self.curvature = length_scale, curvature

    def spreads(self) -> Tensor:
        """Returns the deviation of the weight of each product, (products,)."""
        i, j = torch.triu_indices(len(self.curvature), len(self.curvature))
        twice = torch.where(i == j, 1.0, 2.0**0.5).to(self.curvature)
        return self.curvature[i] * self.curvature[j] * twice


def line_of(x: Tensor) -> Tensor:
    """Returns (1, x), (n, 1 + f)."""
    return torch.cat([torch.ones_like(x[:, :1]), x], 1)


def radial_basis_of(
    x: Tensor, z: Tensor, length_scale: Tensor, scale: Tensor | None = None
) -> Tensor:
    """Returns exp(−½ |x − z|²) in units of the length scales, (n, M), over a scale (M,) if any."""
    found: Tensor = _RadialBasis.apply(length_scale, x, z, scale)
    return found


class _RadialBasis(torch.autograd.Function):
    """Radial basis functions K with their slope in the length scales, and in nothing else.

    As dK / d log ℓ_j = K (x_j − z_j)² / ℓ_j², sums of G ∘ K over rows, over centres and with x say
    what a slope G in K says of ℓ: two passes over n × M numbers, where autograd takes a dozen.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, length_scale: Tensor, x: Tensor, z: Tensor, scale: Tensor | None
    ) -> Tensor:
        """Returns K over the scale."""
        a, b = x / length_scale, z / length_scale
        found = a @ b.T
        found -= 0.5 * (a * a).sum(1)[:, None]
        found -= 0.5 * (b * b).sum(1)
        found.clamp_(max=0.0).exp_()
        if scale is not None:
            found /= scale
        ctx.save_for_backward(length_scale, x, z, found)
        return found

    @staticmethod
    def backward(ctx: FunctionCtx, slope: Tensor) -> tuple[Tensor, None, None, None]:
        """Returns the slope in the length scales."""
        length_scale, x, z, found = ctx.saved_tensors  # type: ignore[attr-defined]
        both = slope * found
        squares = both.sum(1) @ x.square() + both.sum(0) @ z.square()
        squares -= 2.0 * (x * (both @ z)).sum(0)
        return squares / length_scale**3, None, None, None


def choose_prior(x: Tensor, y: Tensor, scale: Tensor, settings: Curves) -> Prior:
    """Returns what the evidence favours; short length scales have to be worth it.

    Few rows and centres lead most of the way, at a tenth of the cost of a step, and say how many
    centres the rest of it needs.

    Arguments:
        x: Features (n, f), in random order.
        y: (n,)
        scale: s (n,).
        settings: Where the search starts, and what short length scales have to be worth.
    """
    few, z_few = slice(settings.rough_rows), x[: settings.rough_centres].unique(dim=0)
    rough = _Evidence(x[few], y[few], z_few, scale[few], settings)
    theta, _ = rough.maximise(rough.expected)
    for last in (False, True):
        centres, shortest = rough.centres(theta, x, scale)
        evidence = _Evidence(x, y, x[centres], scale, settings)
        theta, value = evidence.maximise(theta)
        found = Prior(theta, evidence.sizes)
        if last or bool((found.length_scale >= shortest).all()):
            break
    if bool((found.length_scale >= settings.wide).all()):
        return found
    theta, _ = rough.maximise(rough.expected, shortest=settings.wide)
    with torch.no_grad():
        if float(evidence.log_prob(theta)) < value - settings.hopeless:
            return found
    theta, its_value = evidence.maximise(theta, shortest=settings.wide)
    return found if value > its_value + settings.worth else Prior(theta, evidence.sizes)


def spread_centres(x: Tensor, enough: Tensor, most: int) -> list[int]:
    """Returns rows whose radial basis functions span those of all rows, up to a variance.

    Pivoted Cholesky factors: the next centre is where the last ones know least. One more than
    `most` says that these are not enough.

    Arguments:
        x: Features in units of the length scales, (n, f).
        enough: What may be left of the variance of each row, of one, (n,).
        most: The most centres.
    """
    unsaid, enough = torch.ones_like(x[:, 0]), enough.clamp(min=1e-9)
    factors: list[Tensor] = []
    chosen: list[int] = []
    while len(chosen) <= most:
        pivot = int((unsaid / enough).argmax())
        if bool(unsaid[pivot] < enough[pivot]):
            break
        column = torch.exp(-0.5 * (x - x[pivot]).square().sum(1))
        for factor in factors:
            column = column - factor * factor[pivot]
        factors.append(column / column[pivot].sqrt())
        chosen.append(pivot)
        unsaid = (unsaid - factors[-1].square()).clamp(min=0.0)
    return chosen


class _Evidence:
    """The marginal likelihood of some rows, as a function of the prior of a curve."""

    def __init__(self, x: Tensor, y: Tensor, z: Tensor, scale: Tensor, settings: Curves) -> None:
        self.x, self.y, self.z, self.scale, self.settings = x, y, z, scale, settings
        features = x.shape[1]
        self.sizes = [1, features, features if features <= settings.most_products else 0, 1]
        start = [settings.amplitude, settings.length_scale, settings.curvature, settings.noise]
        self.expected = self._each(start)

    def _each(self, four: list[float]) -> Tensor:
        """Returns the logarithm of one number for each kind, repeated as often as there are."""
        numbers = torch.tensor(four, dtype=torch.float64).log()
        return numbers.repeat_interleave(torch.tensor(self.sizes))

    @torch.no_grad()
    def centres(self, theta: Tensor, x: Tensor, scale: Tensor) -> tuple[list[int], Tensor]:
        """Returns rows that stand for all of them near some logarithms, and down to which lengths.

        What they cannot say costs less than a tenth of a nat there.
        """
        prior, settings = Prior(theta, self.sizes), self.settings
        shortest = settings.centres_reach * prior.length_scale
        enough = 0.1 * (prior.noise * scale / prior.amplitude).square() / len(x)
        chosen = spread_centres(x / shortest, enough, settings.evidence_centres)
        return chosen[: settings.evidence_centres], shortest

    def maximise(self, start: Tensor, shortest: float = 0.05) -> tuple[Tensor, float]:
        """Returns where the evidence is highest, and its value, with no shorter length scale."""
        theta = start.clone().requires_grad_()

        def objective() -> float:
            value = self.log_prob(theta)
            value.backward()
            return float(value.detach())

        with torch.enable_grad():
            found = maximise(
                [theta],
                objective,
                lowest=self._each([0.003, shortest, 0.003, 0.01]).tolist(),
                highest=self._each([30.0, 30.0, 10.0, 3.0]).tolist(),
                steps=self.settings.evidence_steps,
                memory=10,
                value_tolerance=self.settings.evidence_tolerance / len(self.x),
                slope_tolerance=1e-5,
            )
        return theta.detach(), found.value

    def log_prob(self, theta: Tensor) -> Tensor:
        """Returns the evidence at some logarithms, with their own prior, ()."""
        x, z, prior = self.x, self.z, Prior(theta, self.sizes)
        eye = torch.eye(len(z), dtype=x.dtype)
        root = torch.linalg.cholesky(radial_basis_of(z, z, prior.length_scale) + JITTER * eye)
        radial = radial_basis_of(z, x, prior.length_scale, self.scale)
        functions = torch.linalg.solve_triangular(root, radial, upper=False)
        products = products_of(x, x, len(prior.curvature)) * prior.spreads()
        others = torch.cat([self.settings.line_spread * line_of(x), products], 1)
        target = self.y / self.scale
        # Numbers that all rows share are multiplied in last: (M, n) is long, (M, M) is not.
        ratio, precision = prior.amplitude / prior.noise, prior.noise**-2
        others = others / (prior.noise * self.scale)[:, None]
        of_functions = functions @ functions.T
        cross = ratio * (functions @ others)
        upper = torch.cat([ratio.square() * of_functions, cross], 1)
        moments = torch.cat([upper, torch.cat([cross.T, others.T @ others], 1)])
        with_target = torch.cat([ratio * (functions @ target), others.T @ target]) / prior.noise
        inner = torch.linalg.cholesky(moments + torch.eye(len(moments), dtype=x.dtype))
        found = torch.linalg.solve_triangular(inner, with_target[:, None], upper=False)
        fit = 0.5 * (precision * (target @ target) - found.square().sum())
        size = inner.diagonal().log().sum() + (prior.noise * self.scale).log().sum()
        whole = self.scale.square().reciprocal().sum()
        left = ratio.square() * (whole - of_functions.diagonal().sum())
        away = (theta - self.expected) / self.settings.prior_spread
        return -(fit + size + 0.5 * left + 0.5 * away.square().sum())


def products_of(x: Tensor, inside: Tensor, curvatures: int) -> Tensor:
    """Returns the products of features, linear beyond `inside`; none where they are many."""
    return extended_products(x, inside) if curvatures else x[:, :0]
