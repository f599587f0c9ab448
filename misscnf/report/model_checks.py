r"""Does the model fit? Three checks that the rows themselves can make.

1. Noise. Each row is completed by a posterior draw and its noise abducted. Under a right model the
   noise of every node is N(0, 1) and tells nothing about the node's parents.
2. Overimputation. In each row one known value is hidden and drawn anew, K times, from what is left
   of the row. The rank of the truth among the draws,

       v = (#{draws below} + U (1 + #{draws equal})) / (K + 1),    U uniform,

   is uniform under a right model, for numbers and levels alike.
3. Integrals. Where what is hidden was averaged over by draws, how many of them counted, in some
   of the rows.

The first two use the rows that the model was fitted to, so they err on the mild side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable
from misscnf.draws import derive_generator
from misscnf.estimators.fitted import FittedFlow
from misscnf.inference.elimination import Plan
from misscnf.inference.posterior import draw_completions
from misscnf.report.settings import FitChecks

__all__ = ["ModelChecks", "check_fit", "NoiseCheck", "noise_checks"]
__all__ += ["Overimputation", "overimpute", "Integrals", "integrals"]


@dataclass(frozen=True, eq=False)
class NoiseCheck:
    """The noise of one node."""

    node: str
    noise: np.ndarray
    """(n,) sorted; standard normal under a right model."""
    shown: float
    """The share of rows that show the node: in the others its noise is the model's own."""
    p_value: float
    """Kolmogorov and Smirnov's test against N(0, 1), corrected for the number of nodes."""
    parent: str
    """The parent that goes with the noise, or its size, most; empty where there is none."""
    parent_p_value: float
    """Of that, corrected for all parents of all nodes and both tests."""
    level: float
    """A p-value below this is a departure."""
    of_levels: bool = False
    """Whether the node has levels: its noise is drawn then, and a picture of it tells little."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return min(self.p_value, self.parent_p_value) >= self.level


def noise_checks(
    model: FittedFlow, table: IncompleteTable, rules: FitChecks, seed: int
) -> list[NoiseCheck]:
    """Returns the noise of every node in some rows, completed where they have holes."""
    part = _some_rows(table, rules.noise_rows, seed)
    generator = derive_generator(seed, "report", "noise")
    plan = Plan.make(model.graph_, part.observed)
    rows = draw_completions(model.model_, part.values, plan, 1, generator)[0]
    noise = _node_noise(model, rows, generator)
    tests = 2 * sum(map(len, model.graph_.parents)) or 1
    found = []
    for i, name in enumerate(model.graph_.nodes):
        if name in model.graph_.latent:  # a posterior draw is as the model has it
            continue
        own, shown = noise[:, i], float(part.observed[:, i].double().mean())
        parent, p_value = _strongest_parent(model, rows.numpy(), own, i)
        normal = min(1.0, float(stats.kstest(own, "norm").pvalue) * len(model.graph_))
        odd = min(1.0, p_value * tests)
        levels = isinstance(model.schema_.columns[i], Levels)
        tests_of = (shown, normal, parent, odd, rules.level, levels)
        found.append(NoiseCheck(name, np.sort(own), *tests_of))
    return found


def _node_noise(model: FittedFlow, rows: Tensor, generator: torch.Generator) -> np.ndarray:
    """Returns one number of noise for each node, (N, d).

    A categorical node has a noise for each category; its one number here is the normal score of a
    uniform draw from the winner's share of (0, 1).
    """
    scores = []
    for i in range(len(model.graph_)):
        mechanism, parents = model.model_.mechanism(i), model.model_.parents_of(rows, i)
        if mechanism.noise_size == 1:
            scores.append(mechanism.abduct(rows[:, i], parents, generator))
            continue
        codes = [torch.full_like(rows[:, i], float(k)) for k in range(mechanism.noise_size)]
        chances = torch.stack([mechanism.log_prob(k, parents).exp() for k in codes], -1)
        own = rows[:, i].long()[:, None]
        share = torch.rand(len(rows), 1, generator=generator, dtype=torch.float64)
        upto = chances.cumsum(-1).gather(-1, own) - (1.0 - share) * chances.gather(-1, own)
        scores.append(torch.special.ndtri(upto[:, 0].clamp(1e-12, 1.0 - 1e-12)))
    return torch.stack(scores, -1).detach().numpy()


def _strongest_parent(
    model: FittedFlow, rows: np.ndarray, noise: np.ndarray, node: int
) -> tuple[str, float]:
    """Returns the parent whose ranks go most with the noise or its size, and the p-value."""
    best, smallest = "", 1.0
    for j in model.graph_.parents[node]:
        if model.schema_.columns[j].domain.kind == "categorical" or np.ptp(rows[:, j]) == 0.0:
            continue
        for part in (noise, np.abs(noise)):
            p_value = float(stats.spearmanr(rows[:, j], part).pvalue)
            if p_value < smallest:
                best, smallest = model.graph_.nodes[j], p_value
    return best, smallest


@dataclass(frozen=True, eq=False)
class Overimputation:
    """How known values rank among draws of themselves."""

    ranks: np.ndarray
    """(n,) in (0, 1), uniform under a right model."""
    columns: pd.DataFrame
    """A line a column: column, values, within 50, within 90, p_value, ok."""
    draws: int
    """Draws of each value."""

    @property
    def ok(self) -> bool:
        """Whether no column was found to be off."""
        return bool(self.columns["ok"].all())

    def within(self, level: float) -> float:
        """Returns the share of truths inside the middle of the draws."""
        return _within(self.ranks, level)


def overimpute(
    model: FittedFlow, table: IncompleteTable, rules: FitChecks, seed: int
) -> Overimputation | None:
    """Hides one known value in each of some rows and draws it anew; None if too few can be."""
    part = _some_rows(table, rules.hidden_rows, seed)
    part = part.select(part.observed.sum(1) >= 2)  # something must be left to draw from
    if len(part) < rules.fewest:
        return None
    generator = derive_generator(seed, "report", "overimputation")
    hidden = torch.multinomial(part.observed.double(), 1, generator=generator)[:, 0]
    truth = part.values.gather(1, hidden[:, None])[:, 0].numpy()
    observed = part.observed.scatter(1, hidden[:, None], False)  # noqa: FBT003 - a tensor's value
    values = torch.where(observed, part.values, 0.0)
    plan = Plan.make(model.graph_, observed)
    drawn = draw_completions(model.model_, values, plan, rules.draws, generator)
    own = drawn.gather(2, hidden.expand(rules.draws, -1)[..., None])[..., 0].numpy()
    jitter = torch.rand(len(truth), generator=generator, dtype=torch.float64).numpy()
    ranks = _ranks(own, truth, jitter)
    return Overimputation(ranks, _by_column(model, ranks, hidden.numpy(), rules), rules.draws)


def _ranks(drawn: np.ndarray, truth: np.ndarray, jitter: np.ndarray) -> np.ndarray:
    """Returns the randomised ranks of truths (n,) among draws (K, n), in (0, 1)."""
    below, equal = (drawn < truth).sum(0), (drawn == truth).sum(0)
    return (below + jitter * (1 + equal)) / (len(drawn) + 1)


def _by_column(
    model: FittedFlow, ranks: np.ndarray, hidden: np.ndarray, rules: FitChecks
) -> pd.DataFrame:
    lines = []
    for i, name in enumerate(model.graph_.nodes):
        if name in model.graph_.latent:
            continue
        own = ranks[hidden == i]
        p_value = 1.0
        if len(own) >= rules.fewest:
            p_value = min(1.0, float(stats.kstest(own, "uniform").pvalue) * len(model.graph_))
        within = [_within(own, level) if len(own) else np.nan for level in (0.5, 0.9)]
        lines.append((name, len(own), *within, p_value, p_value >= rules.level))
    names = ["column", "values", "within 50", "within 90", "p_value", "ok"]
    return pd.DataFrame(lines, columns=names)


def _within(ranks: np.ndarray, level: float) -> float:
    return float((np.abs(ranks - 0.5) <= level / 2).mean())


@dataclass(frozen=True)
class Integrals:
    """How the likelihood of the rows was computed."""

    rows: int
    exact: int
    """Rows without an integral, or with one in closed form."""
    impossible: int
    """Rows to which the model gives probability zero."""
    smallest: float
    """Effective draws of the row that had the fewest; infinite where all are exact."""
    typical: float
    """Their median over rows that were averaged by draws."""
    enough: float
    """Effective draws that are enough."""
    few: int
    """Rows with fewer."""
    score: float
    """The mean log-density of a row."""
    table: int
    """Rows of the table, of which these are some by chance."""

    @property
    def ok(self) -> bool:
        """Whether every integral is sharp and every row possible."""
        return self.few == 0 and self.impossible == 0


def integrals(model: FittedFlow, table: IncompleteTable, rules: FitChecks, seed: int) -> Integrals:
    """Returns how sharply the log-density of a row is known."""
    some = _some_rows(table, rules.integral_rows, seed)
    found = pd.DataFrame(model.log_prob(some, quality=True, seed=seed))
    draws, log_prob = (found[name].to_numpy(float) for name in ("effective_draws", "log_prob"))
    finite, possible = draws[np.isfinite(draws)], np.isfinite(log_prob)
    return Integrals(
        rows=len(found),
        exact=int(np.isinf(draws).sum()),
        impossible=int((~possible).sum()),
        smallest=float(finite.min()) if len(finite) else np.inf,
        typical=float(np.median(finite)) if len(finite) else np.inf,
        enough=rules.enough_draws,
        few=int((finite < rules.enough_draws).sum()),
        score=float(log_prob[possible].mean()) if possible.any() else float("nan"),
        table=len(table),
    )


@dataclass(frozen=True)
class ModelChecks:
    """All three."""

    noise: list[NoiseCheck]
    ranks: Overimputation | None
    integrals: Integrals


def check_fit(
    model: FittedFlow, table: IncompleteTable, rules: FitChecks, seed: int
) -> ModelChecks:
    """Checks a fitted model by the rows of a table."""
    given = model, table, rules, seed
    return ModelChecks(noise_checks(*given), overimpute(*given), integrals(*given))


def _some_rows(table: IncompleteTable, most: int, seed: int) -> IncompleteTable:
    """Returns all rows that show something, or so many of them at random."""
    filled = table.observed.any(1).nonzero()[:, 0]
    order = torch.randperm(len(filled), generator=derive_generator(seed, "report", "rows"))
    return table.select(filled[order[:most]].sort().values)
