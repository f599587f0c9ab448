r"""The graph against the rows: independences that it claims, and which of them an answer leans on.

An arrow that is not drawn is a claim. Given its parents, a node is independent of every node that
is not its descendant (the local Markov property), so for each pair without an arrow, j before i in
the graph's order, the graph says

    x_i ⟂ x_j | x_pa(i).

**The test** is the generalised covariance measure (Shah and Peters 2020). With a(·) and b(·)
features of the two columns (normal scores of their ranks and the squares of these; indicators of
levels), and e, f what is left of them after flexible regressions on the parents,

    T = Σ_n w_n e_n ⊗ f_n,     T' V⁻¹ T ~ χ²(k),     V = Σ_n w_n² (e_n ⊗ f_n)(e_n ⊗ f_n)',

whatever the laws of the columns. Regressions are splines of the parents' normal scores and their
products; what they find is told only if it is still there after cross-fitted boosted trees took
what they can from e and f. Ranks keep tails out, Holm's correction counts every pair of the graph,
and a correlation below the least one is not told, however certain.

**Holes.** A test sees the rows that show i, j and pa(i). Let S be that event, drawn as a child of
the columns that go with the holes of these (`loss`). If i and j are still d-separated by pa(i) and
S, those rows will do. If not, as where a confounder is lost depending on the outcome, each row has
the weight

    w = 1 / P(S | columns that go with these holes),

by a logistic regression on those of them that every row shows. Where others still go with what it
leaves unexplained, or too many rows have hardly a chance to be shown, no test is made.

**Cost.** Every pair is screened by the correlation that is left in the moments of pairs of columns
(`fitting.select.parents`): one sweep of a matrix for each node. Only the strongest are tested.

**What an effect leans on.** The effect of t on y is the average of the g-formula

    p(x; do(t)) = Π_{i ≠ t} p(x_i | x_pa(i))      over y and its ancestors without arrows into t,

the needed nodes. It is right if every factor is the law given all that comes before i and is
needed or goes with t. So it leans on i ⟂ j | pa(i) for i needed and j either needed, or t, or a
node that has a cause in common with t (or is one) and is no effect of it:

- i below t: an arrow into a mediator or the outcome is missing, or a common cause is;
- i beside t: the law of the covariates is wrong. That changes the average unless the outcome's law
  is a line, or the average is taken over rows that show them;
- i = t: p(t | ·) is no factor, but hidden causes are filled in by it. So it counts if a row hides
  t, j or a needed node.

Claims about other nodes are for information. Inside a block nothing is claimed, nor tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, fdtrc, ndtri

from misscnf.data.table import IncompleteTable
from misscnf.fitting.select.parents import Moments
from misscnf.graph import CausalGraph
from misscnf.graph.separation import d_separated
from misscnf.identification.columns import Column
from misscnf.identification.families import needed_for_effect
from misscnf.identification.loss import Explained, fit_logistic, holm
from misscnf.identification.settings import IndependenceRules

__all__ = ["Contradiction", "claims", "find_contradictions", "leaned_on"]


@dataclass(frozen=True)
class Contradiction:
    """Two nodes that depend on one another where the graph says they do not."""

    node: str
    other: str
    given: tuple[str, ...]
    correlation: float
    """Of what the parents leave of both: the largest of their features' correlations."""
    p_value: float
    """Corrected for all pairs of the graph."""
    rows: int


def find_contradictions(
    graph: CausalGraph,
    table: IncompleteTable,
    columns: Sequence[Column],
    loss: Sequence[Explained],
    rules: IndependenceRules,
    seed: int = 0,
) -> tuple[list[Contradiction], int]:
    """Returns the contradictions, strongest first, and how many independences were screened.

    The columns are those of the nodes first, then others that may go with holes; `loss` says which
    do. The seed picks rows where there are more than needed.
    """
    pairs = claims(graph)
    if not pairs:
        return [], 0
    order = np.random.default_rng(seed).permutation(len(table))[: rules.most_rows]
    test = _Tests(graph, [_part(column, order) for column in columns], loss, rules, seed)
    moments = Moments.of(table.values[order], table.observed[order], table.schema.domains)
    likely = _screened(graph, moments, pairs, rules)
    found = [(pair, test(*pair, trees=False)) for pair in likely]
    kept = _certain([(pair, result) for pair, result in found if result], len(pairs), rules)
    # Pairs without parents left nothing to trees; of the others the strongest are asked again.
    rooted = [line for line in kept if not graph.parents[line[0][0]]]
    again = [line for line in kept if graph.parents[line[0][0]]][: rules.most_confirmed]
    confirmed = [(pair, test(*pair, trees=True)) for pair, _ in again]
    kept = rooted + _certain([(p, result) for p, result in confirmed if result], len(pairs), rules)
    return sorted(
        (_told(graph, pair, result) for pair, result in kept),
        key=lambda line: -abs(line.correlation),
    ), len(pairs)


def leaned_on(
    graph: CausalGraph,
    effect: tuple[str, str],
    found: Sequence[Contradiction],
    *,
    holed: Collection[str],
    rows: bool = False,
) -> list[Contradiction]:
    """Returns the contradictions of independences that an effect leans on.

    `holed` are the columns with holes; `rows` says whether the average is taken over the rows of
    the table: what these show of covariates then needs no law.
    """
    treatment, outcome = map(graph.index, effect)
    needed = needed_for_effect(graph, treatment, outcome)
    above = graph.ancestral_closure([treatment])
    below = graph.descendants([treatment])
    around = needed | {treatment} | (graph.descendants(above) - below)
    hidden = not {graph.nodes[i] for i in (treatment, *needed)}.isdisjoint(holed)
    told = []
    for line in found:
        i, j = graph.index(line.node), graph.index(line.other)
        factor = i in needed or (i == treatment and (hidden or line.other in holed))
        as_they_are = rows and i not in below and {line.node, line.other}.isdisjoint(holed)
        if needed and factor and j in around and not as_they_are:
            told.append(line)
    return told


def claims(graph: CausalGraph) -> list[tuple[int, int]]:
    """Returns the pairs (i, j), j before i, that the graph makes independent given pa(i).

    Both are columns of values: what rows show is chosen by indicators, and says nothing of them.
    Of auxiliary columns nothing is claimed.
    """
    blocks = ([graph.index(name) for name in members] for members in graph.blocks.values())
    silent = {*graph.indicators, *map(graph.index, graph.auxiliary)}
    unclaimed = {pair for members in blocks for pair in itertools.permutations(members, 2)}
    return [
        (i, j)
        for i, parents in enumerate(graph.parents)
        for j in sorted(set(range(i)).difference(parents))
        if (i, j) not in unclaimed and not {i, j} & silent
    ]


def _part(column: Column, rows: np.ndarray) -> Column:
    return Column(column.name, column.values[rows], column.labels, column.ordered, column.node)


def _screened(
    graph: CausalGraph,
    moments: Moments,
    pairs: Sequence[tuple[int, int]],
    rules: IndependenceRules,
) -> list[tuple[int, int]]:
    """Returns the pairs whose features are left most correlated by the moments of pairs."""
    features = [own + square for own, square in zip(moments.own, moments.square, strict=True)]
    strength: dict[tuple[int, int], float] = {}
    for i, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        left = moments.left([f for p in graph.parents[i] for f in features[p]])
        scale = np.sqrt(np.maximum(np.diag(left), rules.least_left))
        near = np.abs(left[features[i]]) / scale[features[i], None] / scale
        for pair in group:
            strength[pair] = float(near[:, features[pair[1]]].max())
    likely = [pair for pair in pairs if strength[pair] >= rules.hint * rules.least_correlation]
    return sorted(likely, key=lambda pair: -strength[pair])[: rules.most_tests]


Result = tuple[float, float, int]
"""Correlation, p-value, rows."""
Line = tuple[tuple[int, int], Result]


def _certain(lines: Sequence[Line], tests: int, rules: IndependenceRules) -> list[Line]:
    """Returns what is both certain, among so many tests, and strong; the strongest first."""
    untested = np.ones(max(0, tests - len(lines)))
    p_values = holm(np.concatenate([[result[1] for _, result in lines], untested]))
    kept = [
        (pair, (r, float(p), rows))
        for (pair, (r, _, rows)), p in zip(lines, p_values[: len(lines)], strict=True)
        if p < rules.level and abs(r) >= rules.least_correlation
    ]
    return sorted(kept, key=lambda line: -abs(line[1][0]))


def _told(graph: CausalGraph, pair: tuple[int, int], result: Result) -> Contradiction:
    (i, j), (correlation, p_value, rows) = pair, result
    node, other = graph.nodes[i], graph.nodes[j]
    return Contradiction(node, other, graph.parents_of(node), correlation, p_value, rows)


class _Tests:
    """Tests of pairs, on the same rows."""

    def __init__(
        self,
        graph: CausalGraph,
        columns: Sequence[Column],
        loss: Sequence[Explained],
        rules: IndependenceRules,
        seed: int,
    ) -> None:
        self.graph, self.columns, self.rules, self.seed = graph, columns, rules, seed
        place = {column.name: k for k, column in enumerate(columns)}
        self.drivers = {
            place[line.column]: [place[by.column] for by in line.by if by.column in place]
            for line in loss
        }
        self.declared = {of: graph.parents[i] for i, of in graph.indicators.items()}
        self.made: dict[int, _Features] = {}

    def __call__(self, i: int, j: int, *, trees: bool) -> Result | None:
        """Returns the correlation that is left of two nodes, its p-value and the rows.

        None where the rows allow no test.
        """
        members = [i, j, *self.graph.parents[i]]
        shown = np.all([self.columns[m].observed for m in members], axis=0)
        enough = shown.sum() >= self.rules.fewest_rows
        weights = self._weights(i, j, members, shown) if enough else None
        if weights is None:
            return None
        rows = np.flatnonzero(shown & (weights > 0.0))
        parents = [self.features(p) for p in self.graph.parents[i]]
        design = _design(parents, rows, self.rules)
        if len(rows) - design.shape[1] < self.rules.fewest_rows:
            return None
        w = weights[rows] / weights[rows].mean()
        both = [self.features(node).values[rows] for node in (i, j)]
        left = _residuals(np.column_stack(both), design, w)
        if trees and parents:
            left = left - self._trees(left, np.hstack([p.first(rows) for p in parents]), w)
        split = both[0].shape[1]
        return _covariance_test(left[:, :split], left[:, split:], w, design.shape[1])

    def features(self, node: int) -> _Features:
        """Returns the features of a column, made once."""
        if node not in self.made:
            self.made[node] = _Features.of(self.columns[node], self.rules)
        return self.made[node]

    def _weights(
        self, i: int, j: int, members: Sequence[int], shown: np.ndarray
    ) -> np.ndarray | None:
        """Returns the weight of each row (N,): one where loss leaves the claim as it is."""
        declared = {d for m in members for d in self.declared.get(m, ())}
        drivers = sorted({d for m in members for d in self.drivers.get(m, ())} | declared)
        if self._separated(i, j, members[2:], drivers):
            return np.ones(len(shown))
        whole = [d for d in drivers if self.columns[d].observed.all()]
        if not declared.issubset(whole):
            return None
        about = np.column_stack([np.ones(len(shown)), *(self.features(d).values for d in whole)])
        fit = fit_logistic(about[:, 1:], shown, penalty=1.0)
        chance = expit(about @ np.append(fit.intercept, fit.weights))
        if any(self._goes_with(d, shown - chance) for d in drivers if d not in whole):
            return None
        kept = chance >= self.rules.least_chance
        # To leave out more rows would be a choice by the same columns again.
        enough = kept.mean() >= 1.0 - self.rules.most_left_out
        return np.where(kept, 1.0 / chance, 0.0) if enough else None

    def _goes_with(self, column: int, left: np.ndarray) -> bool:
        """Tells whether a column with holes still goes with loss that others explain in part."""
        rows = self.columns[column].observed
        part = self.features(column).values[rows]
        even = np.ones(len(part))
        return (
            _covariance_test(left[rows, None], part - part.mean(0), even, 1)[1] < self.rules.level
        )

    def _separated(self, i: int, j: int, parents: Sequence[int], drivers: Sequence[int]) -> bool:
        """Tells whether the claim still holds in rows that loss, by these columns, has left."""
        if not drivers:
            return True
        if any(self.columns[d].node is None for d in drivers):
            return False  # where it stands in the graph nobody said
        with_shown = [*self.graph.parents, drivers]
        return d_separated(with_shown, [i], [j], [*parents, len(self.graph)])

    def _trees(self, left: np.ndarray, parents: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Returns what boosted trees of the parents find in residuals, learned on other rows."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import, rarely asked

        found, folds = np.zeros_like(left), np.arange(len(left)) % self.rules.folds
        for fold, column in itertools.product(range(self.rules.folds), range(left.shape[1])):
            learn, judge = folds != fold, folds == fold
            trees = HistGradientBoostingRegressor(
                max_iter=self.rules.trees, min_samples_leaf=self.rules.leaf, random_state=self.seed
            )
            trees.fit(parents[learn], left[learn, column], sample_weight=w[learn])
            found[judge, column] = trees.predict(parents[judge])
        return found


@dataclass(frozen=True, eq=False)
class _Features:
    """A column as the tests see it: (N, k), NaN in its holes."""

    values: np.ndarray
    number: bool
    """Whether these are a normal score and its square, not indicators of levels."""

    @staticmethod
    def of(column: Column, rules: IndependenceRules) -> _Features:
        values, shown = column.values, column.observed
        levels, counts = np.unique(values[shown], return_counts=True)
        if column.ordered and len(levels) > 2:
            from scipy.stats import rankdata  # slow to import: a loaded model asks for none of it

            z = np.full(len(values), np.nan)
            z[shown] = ndtri((rankdata(values[shown]) - 0.5) / shown.sum())
            return _Features(np.column_stack([z, z**2]), number=True)
        common = levels[np.argsort(-counts, kind="stable")][1 : rules.most_levels + 1]
        parts = [np.where(shown, values == level, np.nan) for level in common]
        return _Features(np.reshape(parts, (len(common), -1)).T.astype(np.float64), number=False)

    def design(self, rows: np.ndarray, knots: int) -> np.ndarray:
        """Returns cubic splines of a number, or the indicators, of some rows."""
        if not self.number:
            return self.values[rows]
        z = self.values[rows, 0]
        inner = np.unique(np.quantile(z, np.linspace(0.0, 1.0, knots + 2)[1:-1]))
        bends = np.maximum(0.0, z[:, None] - inner) ** 3
        return np.column_stack([z, z**2, z**3, bends])

    def first(self, rows: np.ndarray) -> np.ndarray:
        """Returns what products with other parents are made of."""
        return self.values[rows, :1] if self.number else self.values[rows]


def _design(
    parents: Sequence[_Features], rows: np.ndarray, rules: IndependenceRules
) -> np.ndarray:
    """Returns an intercept, splines, levels, and products of parents as far as rows allow."""
    parts = [np.ones((len(rows), 1)), *(parent.design(rows, rules.knots) for parent in parents)]
    room = len(rows) / rules.rows_a_feature - sum(part.shape[1] for part in parts)
    for a, b in itertools.combinations([parent.first(rows) for parent in parents], 2):
        room -= a.shape[1] * b.shape[1]
        if room < 0:
            break
        parts.append((a[:, :, None] * b[:, None, :]).reshape(len(rows), -1))
    return np.column_stack(parts)


def _residuals(both: np.ndarray, design: np.ndarray, w: np.ndarray) -> np.ndarray:
    root = np.sqrt(w)[:, None]
    slopes = np.linalg.lstsq(root * design, root * both, rcond=1e-8)[0]
    left: np.ndarray = both - design @ slopes
    return left


def _covariance_test(e: np.ndarray, f: np.ndarray, w: np.ndarray, used: int) -> Result:
    """Returns the largest correlation, the p-value that all are zero, and the rows."""
    n = len(e)
    scale = [np.sqrt((w[:, None] * part**2).sum(axis=0)) for part in (e, f)]
    if min(part.max() for part in scale) <= 1e-6 * np.sqrt(n):
        return 0.0, 1.0, n  # a node that its parents determine has nothing left
    correlation = (e * w[:, None]).T @ f / np.maximum(np.outer(*scale), 1e-12)
    products = w[:, None] * (e[:, :, None] * f[:, None, :]).reshape(n, -1)
    total, spread = products.sum(axis=0), products.T @ products
    rank = np.linalg.matrix_rank(spread)
    squared = float(total @ np.linalg.pinv(spread, hermitian=True) @ total)
    squared /= max(1e-12, 1.0 - squared / n)  # by the spread around the mean, as Hotelling's
    freedom = n - used - rank
    p_value = float(fdtrc(rank, freedom, squared * freedom / (n * rank))) if rank else 1.0
    largest = correlation.flat[int(np.abs(correlation).argmax())]
    return float(largest), p_value, n
