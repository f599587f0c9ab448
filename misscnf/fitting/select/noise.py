r"""Is the noise of a node normal, and its scale constant? A score test: nothing is fitted.

At a fitted Gaussian mechanism, u = (x − m(x_pa)) / s is standard normal and independent of the
parents. Four directions away from the normal law, and 2 p away from a constant scale,

    sin u − …,  cos u − …,  sin 2u − …,  cos 2u − …,      (u² − 1) b(x_pa),

have mean zero given what a row shows, if the fit is right (Rao 1948; each is the slope of the log-
likelihood as the law of u is tilted that way, by Fisher's identity). What the fit could have moved
by itself, u and u² − 1 and u b(x_pa) of all nodes, the basis functions of curves among the b, is
regressed out of them row by row (Neyman's C(α)). With r_i what is left of row i, (Σ r)ᵀ (Σ r rᵀ)⁻¹
(Σ r) is χ² under the fit.

The test is a sieve: it says which nodes are worth a richer noise, `forms` whether it pays.
"""

from __future__ import annotations

import math

import torch
from scipy.stats import chi2
from torch import Tensor

from misscnf.fitting.completions import Cells, Completions
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = ["noise_p_values"]


@torch.no_grad()
def noise_p_values(
    model: StructuralModel, completions: Completions, farthest: float = 3.0
) -> dict[int, float]:
    """Returns how likely so odd a noise is if the mechanism of its block is right.

    Arguments:
        model: The fit.
        completions: Completions of the rows by it.
        farthest: Standard deviations of a parent: farther out, it moves the scale no more.

    Returns:
        A p-value for every block with normal noise of constant scale.
    """
    families = completions.families(torch.arange(len(completions)))
    known, asked = [], {}
    for block, nodes in enumerate(model.blocks):
        mechanism = model.block(block)
        if not mechanism.normal_noise:
            continue
        scores = []
        for node in nodes:
            cells = families.nodes[node]
            u = mechanism.abduct(cells.own, cells.parents)
            features = mechanism.features(cells.parents).clamp(-farthest, farthest)
            nuisance, tested = _directions(u, features)
            moved = u[:, None] * _basis_functions(mechanism, cells.parents)
            both = torch.cat([nuisance, moved, tested], 1)
            scores.append(_row_scores(both, cells, families.component_row, len(completions)))
        of_rows, last = torch.stack(scores).sum(0), tested.shape[1]
        known.append(of_rows[:, :-last])
        asked[block] = of_rows[:, -last:]
    return {block: _p_value(scores, torch.cat(known, 1)) for block, scores in asked.items()}


def _basis_functions(mechanism: Mechanism, parents: Tensor) -> Tensor:
    """Returns the basis functions of a curve, (n, r); none of a line or a network."""
    mean = mechanism.linear_mean()
    if mean is None:
        return parents.new_zeros(len(parents), 0)
    return mean.columns(parents)[:, 1 + mechanism.features(parents).shape[1] :]


def _row_scores(at_cells: Tensor, cells: Cells, component_row: Tensor, rows: int) -> Tensor:
    """Returns what each row expects of functions of a node's cells, (N, q)."""
    scores = at_cells.new_zeros(rows, at_cells.shape[1])
    scores.index_add_(0, cells.free, at_cells[: len(cells.free)])
    return scores.index_add_(0, component_row[cells.component], at_cells[cells.place].mean(0))


def _p_value(asked: Tensor, known: Tensor) -> float:
    """Returns the p-value of scores, less what the fit could have moved."""
    left = asked - known @ torch.linalg.lstsq(known, asked, driver="gelsd").solution
    total, spread = left.sum(0), left.T @ left
    rank = int(torch.linalg.matrix_rank(spread, hermitian=True))
    statistic = total @ torch.linalg.pinv(spread, hermitian=True) @ total
    return float(chi2.sf(float(statistic), rank)) if rank else 1.0


def _directions(u: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what the fit could have moved, and what it could not, at each cell."""
    square = u * u - 1.0
    one, two = math.exp(-0.5), math.exp(-2.0)
    shape = [
        torch.sin(u) - one * u,
        torch.cos(u) - one * (1.0 - 0.5 * square),
        torch.sin(2.0 * u) - 2.0 * two * u,
        torch.cos(2.0 * u) - two * (1.0 - 2.0 * square),
    ]
    squares = features.square()
    around = torch.cat([features - features.mean(0), squares - squares.mean(0)], 1)
    scale = around * square[:, None]
    nuisance = torch.cat([torch.stack([u, square], 1), u[:, None] * features], 1)
    return nuisance, torch.cat([torch.stack(shape, 1), scale], 1)
