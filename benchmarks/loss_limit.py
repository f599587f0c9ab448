r"""Told a loss that is not there: what 20,000 rows can say of it, by the right parametric model.

Worlds chain_lin and chain_nlin of the study, MAR 60 %: x1, which every row shows, drives the loss
of x2 and x3. The model that is told is

    x_1 = m_1 + s_1 u_1,   x_i = m_i + w_i f_i(x_{i−1}) + s_i u_i,   f_i as in the world,
    logit P(x_i lost) = a_i + c_i x_1 + b_i z_i,                     i = 2, 3,

z_i being x_i in units of the truth; its likelihood is a quadrature. No method knows more than it.

**The limit.** At the truth (b = 0) with I the information of a row with holes about all of this,
and F that of a complete row about the laws of the values, the maximum of the likelihood has the
error E[KL(p* ‖ p) + KL(p ‖ p*)] = tr(F I⁻¹) / n, with b known to be zero or free. Their ratio is
what not knowing b costs. With the belief b ~ N(0, τ²), which has the truth at its centre, I⁻¹ / n
becomes (nI + Λ)⁻¹ nI (nI + Λ)⁻¹, Λ = 1 / τ² for the b. `tables` has the same maximum on tables of
the study.

**Two worlds that fit alike.** On many rows the model of the claim alone (c = 0) comes to a world
in which x_i drives its own loss. `nats` is how far 20,000 rows tell it from the truth, with its
standard error; `apart` the error of one where the other is true; `confused` the least sum of both
errors of a test between them, 2 Φ(−√(nats / 2)), as their log-ratio is about normal.

    python benchmarks/loss_limit.py [--tables 3] [--scm chain_lin]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from misscnf_study.data import make_data
from report import finish
from scipy import optimize, stats
from torch import Tensor

ROWS, MANY, FITTED, NODES, SPREAD, BAR = 20_000, 200_000, 50_000, 16, 1.5, 1.5
Curve = Callable[[Tensor], Tensor]
CURVES: dict[str, tuple[Curve, Curve]] = {
    "chain_lin": (lambda x: x, lambda x: x),
    "chain_nlin": (lambda x: torch.exp(x / 2.0), lambda x: (x - 5.0) ** 3 / 15.0),
}
LINES = {  # m_1, log s_1; m_2, w_2, log s_2; m_3, w_3, log s_3
    "chain_lin": [0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.25, np.log(2.0)],
    "chain_nlin": [0.0, 0.0, 0.0, 1.0, np.log(0.25), 0.0, 1.0, 0.0],
}
VALUES, OWN, OTHERS = range(8), (10, 13), (9, 12)
"""Places of the laws of values, of b and of c; a_i stand before these."""
torch.set_default_dtype(torch.float64)
_x, _w = np.polynomial.hermite_e.hermegauss(NODES)
POINTS, WEIGHTS = torch.tensor(_x), torch.tensor(np.log(_w / _w.sum()))


class Chain:
    """The model of a world, its parameters a vector of 14."""

    def __init__(self, scm: str) -> None:
        self.curves, self.lines = CURVES[scm], torch.tensor(LINES[scm])
        x = self.complete(self.lines, MANY, 0)
        self.centre, self.scale = x[:, 1:].mean(0), x[:, 1:].std(0)

    def means(self, p: Tensor, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the means of x2 and x3 given what is before them."""
        second = p[2] + p[3] * self.curves[0](x1)
        return second, p[5] + p[6] * self.curves[1](x2)

    def complete(self, p: Tensor, rows: int, seed: int) -> Tensor:
        """Draws complete rows."""
        u = torch.randn(rows, 3, generator=torch.Generator().manual_seed(seed))
        x1 = p[0] + p[1].exp() * u[:, 0]
        x2 = self.means(p, x1, x1)[0] + p[4].exp() * u[:, 1]
        x3 = self.means(p, x1, x2)[1] + p[7].exp() * u[:, 2]
        return torch.stack([x1, x2, x3], 1)

    def logit(self, p: Tensor, which: int, x1: Tensor, x: Tensor) -> Tensor:
        """Returns the log-odds that x2 (which = 0) or x3 (1) is lost."""
        a, c, b = p[8 + 3 * which : 11 + 3 * which]
        return a + c * x1 + b * (x - self.centre[which]) / self.scale[which]

    def log_prob(self, p: Tensor, row: Tensor, lost: tuple[bool, bool]) -> Tensor:
        """Returns the log-likelihood of one row of a pattern: values shown, and holes."""
        x1, s2, s3 = row[0], p[4].exp(), p[7].exp()
        mean2 = self.means(p, x1, x1)[0]
        x2 = mean2 + s2 * POINTS if lost[0] else row[1:2]  # one point or NODES of them
        total = WEIGHTS if lost[0] else _normal(x2, mean2, s2)
        total = total + F.logsigmoid((1 if lost[0] else -1) * self.logit(p, 0, x1, x2))
        mean3 = self.means(p, x1, x2)[1]
        if lost[1]:
            x3 = mean3[:, None] + s3 * POINTS
            third = torch.logsumexp(WEIGHTS + F.logsigmoid(self.logit(p, 1, x1, x3)), 1)
        else:
            third = _normal(row[2], mean3, s3) + F.logsigmoid(-self.logit(p, 1, x1, row[2]))
        return torch.logsumexp(total + third, 0) + _normal(x1, p[0], p[1].exp())

    def per_row(self, p: Tensor, x: Tensor, holes: Tensor, *, scores: bool = False) -> Tensor:
        """Returns log-likelihoods of rows (N,), or their gradients (N, 14)."""
        found = x.new_zeros((len(x), len(p)) if scores else len(x))
        for lost in ((False, False), (True, False), (False, True), (True, True)):
            those = (holes == torch.tensor(lost)).all(1)
            if not those.any():
                continue
            call = torch.func.grad(self.log_prob) if scores else self.log_prob
            each = torch.func.vmap(call, in_dims=(None, 0, None), chunk_size=5_000)
            found[those] = each(p, x[those].nan_to_num(0.0), lost)
        return found

    def fit(self, start: Tensor, x: Tensor, holes: Tensor, free: list[int]) -> Tensor:
        """Returns the maximum of the likelihood over some of the parameters."""

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            moved = torch.tensor(at, requires_grad=True)
            p = start.clone()
            p[free] = moved
            value = -self.per_row(p, x, holes).mean()
            (slope,) = torch.autograd.grad(value, moved)
            return float(value.detach()), slope.numpy()

        best = optimize.minimize(
            loss, start[free].numpy(), jac=True, method="BFGS", options={"gtol": 1e-7}
        )
        p = start.clone()
        p[free] = torch.tensor(best.x)
        return p

    def apart(self, p: Tensor, q: Tensor) -> float:
        """Returns the symmetric divergence of the laws of values."""
        return self._divergence(p, q) + self._divergence(q, p)

    def _divergence(self, p: Tensor, q: Tensor) -> float:
        x = self.complete(p, MANY, 1)
        total = 0.0
        ours, theirs = (
            ((r[0], r[1]), *zip(self.means(r, x[:, 0], x[:, 1]), r[[4, 7]], strict=True))
            for r in (p, q)
        )
        for (m, log_s), (n, log_t) in zip(ours, theirs, strict=True):
            ratio = 2.0 * (log_s - log_t)
            gap = ((m - n) / log_t.exp()) ** 2
            total += 0.5 * float((ratio.exp() - ratio - 1.0 + gap).mean())
        return total


def _normal(x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return -0.5 * ((x - mean) / scale) ** 2 - scale.log() - 0.5 * np.log(2.0 * np.pi)


def truth_of(chain: Chain, x: Tensor, holes: Tensor) -> Tensor:
    """Returns the parameters of the world, with the loss of x2 and x3 by x1 of this table."""
    p = torch.cat([chain.lines, torch.zeros(6)])
    return chain.fit(p, x, holes, [8, 9, 11, 12])


def limits(chain: Chain, truth: Tensor) -> dict[str, float]:
    """Returns tr(F I⁻¹) / n with the slopes b known, free and believed."""
    x = chain.complete(truth, FITTED, 2)
    holes = lose(chain, truth, x, 3)
    scores = chain.per_row(truth, x, holes, scores=True)
    whole = chain.per_row(truth, x, torch.zeros_like(holes), scores=True)[:, : len(VALUES)]
    f, i = whole.T @ whole / FITTED, scores.T @ scores / FITTED * ROWS
    known, every = [k for k in range(14) if k not in OWN], list(range(14))
    prior = torch.zeros(14)
    prior[list(OWN)] = SPREAD**-2
    inverse = torch.linalg.inv(i + prior.diag())

    def error(covariance: Tensor) -> float:
        return float(torch.trace(f @ covariance[: len(VALUES), : len(VALUES)]))

    free = torch.linalg.inv(i)
    return {
        "known": error(torch.linalg.inv(i[known][:, known])),
        "free": error(free[every][:, every]),
        "believed": error(inverse @ i @ inverse),
        **{f"slope {k + 2} sd": float(free[at, at].sqrt()) for k, at in enumerate(OWN)},
    }


def lose(chain: Chain, p: Tensor, x: Tensor, seed: int) -> Tensor:
    """Draws which cells of x2 and x3 are lost."""
    chances = torch.stack(
        [torch.sigmoid(chain.logit(p, k, x[:, 0], x[:, k + 1])) for k in (0, 1)], 1
    )
    return torch.rand(chances.shape, generator=torch.Generator().manual_seed(seed)) < chances


def alike(chain: Chain, truth: Tensor) -> dict[str, float]:
    """Returns how far rows tell the truth from the best world of the claim alone, both ways."""
    claim = [k for k in range(14) if k not in OTHERS]
    x = chain.complete(truth, FITTED, 4)
    holes = lose(chain, truth, x, 5)
    start = truth.clone()
    start[list(OTHERS)] = 0.0
    start[list(OWN)] = truth[list(OTHERS)]
    told = chain.fit(start, x, holes, claim)
    found = {"apart": chain.apart(truth, told)}
    new = chain.complete(truth, MANY, 6)
    gone = lose(chain, truth, new, 7)
    gap = chain.per_row(truth, new, gone) - chain.per_row(told, new, gone)
    nats = float(gap.mean()) * ROWS
    error = float(gap.std()) / MANY**0.5 * ROWS
    confused = float(2.0 * stats.norm.cdf(-((max(nats, 0.0) / 2.0) ** 0.5)))
    return {**found, "nats": nats, "its error": error, "confused": confused}


def tables(chain: Chain, scm: str, count: int) -> list[dict[str, float]]:
    """Returns the errors of maximum likelihood on the study's own tables."""
    found = []
    for seed in range(count):
        table = make_data(scm, "mar", 0.6, seed).tables.train
        x = torch.tensor(table[["x1", "x2", "x3"]].to_numpy(dtype=float))
        holes = x[:, 1:].isnan()
        truth = truth_of(chain, x, holes)
        line: dict[str, float] = {"seed": seed}
        known = [k for k in range(14) if k not in OWN]
        for name, free in (("known", known), ("free", list(range(14)))):
            p = chain.fit(truth, x, holes, free)
            line[name] = chain.apart(chain_values(truth), chain_values(p))
        print(scm, line, flush=True)
        found.append(line)
    return found


def chain_values(p: Tensor) -> Tensor:
    """Returns the laws of values alone."""
    return p[: len(VALUES)]


def main() -> None:
    """Prints the limits, the worlds that fit alike, and maximum likelihood on tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scm", action="append", choices=tuple(CURVES))
    parser.add_argument("--tables", type=int, default=3)
    options, figures, bars = parser.parse_args(), {}, {}
    torch.set_num_threads(1)
    for scm in options.scm or CURVES:
        chain = Chain(scm)
        table = make_data(scm, "mar", 0.6, 0).tables.train
        x = torch.tensor(table[["x1", "x2", "x3"]].to_numpy(dtype=float))
        truth = truth_of(chain, x, x[:, 1:].isnan())
        limit = limits(chain, truth)
        limit["times"] = limit["free"] / limit["known"]
        limit["times, believed"] = limit["believed"] / limit["known"]
        print(scm, limit, flush=True)
        both = alike(chain, truth)
        print(scm, both, flush=True)
        figures[scm] = {**limit, **both, "tables": tables(chain, scm, options.tables)}
        bars[f"{scm}: at most {BAR} times is within reach"] = limit["times"] <= BAR
    finish(figures, bars)


if __name__ == "__main__":
    main()
