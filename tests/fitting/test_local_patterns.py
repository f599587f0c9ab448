"""The likelihood of local patterns against the dense normal law of what each row shows."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from misscnf.data.rows import MemoryRows
from misscnf.fitting.solve.local_patterns import Families, LinearRows
from misscnf.graph import CausalGraph

GRAPH = CausalGraph.read("a -> b; a -> c; b -> d; c -> d; d -> e; f -> e; c -> g; h")


def random_line(seed):
    """Intercepts, slopes (d, d) and scales of a random linear model."""
    rng = np.random.default_rng(seed)
    d = len(GRAPH)
    slopes = np.zeros((d, d))
    for i, parents in enumerate(GRAPH.parents):
        slopes[i, list(parents)] = rng.normal(size=len(parents))
    return rng.normal(size=d), slopes, np.exp(0.5 * rng.normal(size=d))


def holed_rows(rows, lost, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(loc=3.0, size=(rows, len(GRAPH)))
    return MemoryRows(torch.tensor(values), torch.tensor(rng.random(values.shape) >= lost))


def dense_log_prob(rows, line):
    intercepts, slopes, scales = line
    total = np.linalg.inv(np.eye(len(GRAPH)) - slopes)
    mean, covariance = total @ intercepts, total @ np.diag(scales**2) @ total.T
    found = 0.0
    for x, seen in zip(rows.values.numpy(), rows.observed.numpy(), strict=True):
        if seen.any():
            law = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
            found += law.logpdf(x[seen])
    return found


def factors(line, centre):
    """All a_i for centred columns, and the log-scales."""
    intercepts, slopes, scales = line
    a = []
    for i, parents in enumerate(GRAPH.parents):
        weights = slopes[i, list(parents)]
        intercept = intercepts[i] + weights @ centre[list(parents)] - centre[i]
        a += [-intercept, 1.0, *-weights]
    return torch.tensor(a).requires_grad_(), torch.tensor(np.log(scales)).requires_grad_()


@pytest.mark.parametrize(("rows", "lost"), [(60, 0.4), (900, 0.3), (40, 0.0), (40, 0.9)])
def test_log_prob_is_that_of_the_dense_law(rows, lost):
    table, line, centre = holed_rows(rows, lost), random_line(1), np.full(len(GRAPH), 2.5)
    found, _ = LinearRows(GRAPH, table, torch.tensor(centre)).log_prob(*factors(line, centre))
    assert float(found) == pytest.approx(dense_log_prob(table, line), rel=1e-10)


def test_gradient_is_that_of_differences():
    table, line, centre = holed_rows(80, 0.4), random_line(2), np.zeros(len(GRAPH))
    rows = LinearRows(GRAPH, table, torch.tensor(centre))
    parameters = factors(line, centre)
    rows.log_prob(*parameters)[1].backward()
    for parameter in parameters:
        for k in range(len(parameter)):
            step = torch.zeros_like(parameter)
            step[k] = 1e-5
            up, down = (
                float(
                    rows.log_prob(*[p + s * step if p is parameter else p for p in parameters])[0]
                )
                for s in (1.0, -1.0)
            )
            assert float(parameter.grad[k]) == pytest.approx(
                (up - down) / 2e-5, rel=1e-5, abs=1e-4
            )


def test_many_rows_need_no_more_than_their_local_patterns():
    """Vectors that stand for rows are at most as many as cells around a local pattern."""
    few, many = (
        LinearRows(GRAPH, holed_rows(rows, 0.2), torch.zeros(len(GRAPH))) for rows in (2000, 20000)
    )
    cells = [sum(bucket.cells.numel() for bucket in rows._buckets) for rows in (few, many)]
    assert cells[1] < 3 * cells[0]
    assert len(Families(GRAPH).node) == len(many.shown)
