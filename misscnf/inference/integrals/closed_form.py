r"""Closed form where all mechanisms of a component are linear-Gaussian (this is FIML).

With x_i = b_i + w_i · x_pa(i) + s_i u_i, each factor of a component, of a hidden node or of its
evidence, is a normal density in one linear form of the hidden values h:

    φ_i = N(a_i · h; t_i, s_i²),   a_i = e_i − w_i (hidden i),  −w_i (observed i);   t_i the rest.

So the posterior of h has the precision Λ = Σ a_i a_iᵀ / s_i² and the mean Λ⁻¹ η with
η = Σ a_i t_i / s_i², and the integral is

    log ∫ Π φ_i dh = ½ [ m log 2π − log|Λ| + ηᵀ Λ⁻¹ η − Σ (t_i²/s_i² + log 2π s_i²) ].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from misscnf.draws import normal_numbers
from misscnf.errors import FitError
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import LinearForm
from misscnf.model import StructuralModel

__all__ = ["GaussianIntegral", "closed_form", "linear_gaussian"]


@dataclass(frozen=True)
class GaussianIntegral:
    """Components of at most m hidden nodes, padded to m by independent standard normals."""

    components: Components
    slot: Tensor
    """(H,) the place of each cell in its component"""
    mean: Tensor
    """(C, m)"""
    root: Tensor
    """(C, m, m) lower triangular, precision = root rootᵀ"""
    integral: Tensor
    """(C,)"""
    below_target: int = 0

    def log_integral(self) -> Tensor:
        """Returns the closed form, (C,)."""
        return self.integral

    def standard_error(self) -> Tensor:
        """Returns zeros: the value is exact."""
        return torch.zeros_like(self.integral)

    def effective_size(self) -> Tensor:
        """Returns infinity: no draws are needed."""
        return torch.full_like(self.integral, math.inf)

    def draw(self, count: int, generator: Generator, *, even: bool = False) -> Tensor:
        """Returns exact posterior draws, (H, count); antithetic pairs where `even`."""
        shape = (*self.mean.shape, (count + 1) // 2 if even else count)
        scores = normal_numbers(shape, generator, self.mean)
        if even:
            scores = torch.cat([scores, -scores], dim=-1)[..., :count]
        away = torch.linalg.solve_triangular(self.root.transpose(1, 2), scores, upper=True)
        return (self.mean[..., None] + away)[self.components.cell_component, self.slot]

    def expected_log_factors(
        self, model: StructuralModel, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Averages over points with the posterior's mean and covariance.

        The 2m points mean ± √m · (columns of its root), of equal weight, average every quadratic
        function exactly, and so every log-factor of a linear-Gaussian component.
        """
        mean, m = self.mean.detach(), self.mean.shape[1]
        eye = math.sqrt(m) * torch.eye(m, dtype=mean.dtype, device=mean.device)
        root = self.root.detach().transpose(1, 2)
        away = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=True)
        points = mean[..., None] + torch.cat([away, -away], dim=-1)
        hidden = points[self.components.cell_component, self.slot].to(values)
        log_joint = Sweep(model, values, self.components).log_joint(hidden)
        return (weight * log_joint.mean(1)).sum()


def linear_gaussian(model: StructuralModel, components: Components) -> Tensor:
    """Says which components have a closed form, (C,).

    A mechanism that bends along some parents is a line in the others where these are shown.
    """
    device, d = components.row.device, len(model.graph)
    forms = model.linear_forms()
    found = ~components.touching(torch.tensor([form is None for form in forms], device=device))
    for node, form in enumerate(forms):
        if form is not None and form.held:
            bent, mine = torch.zeros(2, d, dtype=torch.bool, device=device)
            bent[[model.graph.parents[node][place] for place in form.held]] = True
            mine[node] = True
            found &= ~(components.touching(mine) & components.hiding(bent))
    return found


def closed_form(
    model: StructuralModel, values: Tensor, components: Components
) -> Iterator[GaussianIntegral]:
    """Yields the integrals of components of similar size, so that padding stays small."""
    if not len(components):
        return
    bucket = torch.ceil(torch.log2(components.size.double())).long()
    for exponent in bucket.unique().tolist():
        # In double precision: sharp evidence on several nodes makes the precision ill-conditioned.
        yield _integral(model, values.double(), components.select(bucket == exponent))


def _root(precision: Tensor) -> Tensor:
    """Returns the Cholesky factors of precisions (H, m, m), or says why there are none.

    Where one column determines another, rounding may leave one indefinite: a ridge of that size,
    in those components alone, makes it definite again.
    """
    root, failed = torch.linalg.cholesky_ex(precision)
    size = precision.detach().diagonal(dim1=1, dim2=2).amax(1)
    for ridge in (1e-14, 1e-12, 1e-10):
        if not failed.any():
            return root
        added = torch.where(failed > 0, ridge * size, 0.0)
        eye = torch.eye(precision.shape[1]).to(precision)
        root, failed = torch.linalg.cholesky_ex(precision + added[:, None, None] * eye)
    if failed.any():
        raise FitError(
            "what is hidden in some rows has no finite spread: look for columns that others "
            "determine, such as copies and sums, and take them out of the graph."
        )
    return root


def _integral(model: StructuralModel, values: Tensor, components: Components) -> GaussianIntegral:
    c, slot, m = components, components.slots(), int(components.size.max())
    slot_of = torch.full(values.shape, -1, dtype=torch.int64, device=values.device)
    slot_of[c.cell_row, c.cell_node] = slot
    padding = torch.arange(m, device=values.device) >= c.size[:, None]
    precision = torch.diag_embed(padding.to(values))
    shift = values.new_zeros(len(c), m)
    constant = values.new_zeros(len(c))
    for node, rows, component in _factors(c, len(model.graph)):
        form = model.mechanism(node).linear_form()
        assert form is not None
        a, t = _linear_factor(model, values, slot_of, node, rows, form, m)
        scale = form.scale.to(values)
        precision = precision.index_add(0, component, a[:, :, None] * a[:, None, :] / scale**2)
        shift = shift.index_add(0, component, a * t[:, None] / scale**2)
        cost = t**2 / scale**2 + 2.0 * torch.log(scale) + math.log(2.0 * math.pi)
        constant = constant.index_add(0, component, cost)
    root = _root(precision)
    mean = torch.cholesky_solve(shift[..., None], root)[..., 0]
    log_det = 2.0 * root.diagonal(dim1=1, dim2=2).log().sum(1)
    constant = constant - c.size.to(values) * math.log(2.0 * math.pi)
    integral = 0.5 * (-log_det + (shift * mean).sum(1) - constant)
    return GaussianIntegral(c, slot, mean, root, integral)


def _factors(c: Components, nodes: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yields each node that has factors, with their rows and components: hidden, then evidence."""
    for node, row, component in (
        (c.cell_node, c.cell_row, c.cell_component),
        (c.evidence_node, c.evidence_row, c.evidence_component),
    ):
        counts = torch.bincount(node, minlength=nodes).tolist()
        parts = zip(row.split(counts), component.split(counts), strict=True)
        yield from ((i, *part) for i, part in enumerate(parts) if counts[i])


def _linear_factor(
    model: StructuralModel,
    values: Tensor,
    slot_of: Tensor,
    node: int,
    rows: Tensor,
    form: LinearForm,
    m: int,
) -> tuple[Tensor, Tensor]:
    """Returns a (n, m) and t (n,) of factors of one node, all hidden or all observed."""
    own_value, seen = model.family_of(values, node, rows)
    own_slot, slots = model.family_of(slot_of, node, rows)
    weights = form.weights.to(values).expand(len(rows), -1)
    if form.slopes is not None:
        weights = weights + form.slopes(seen)
    hidden = slots >= 0
    known = (torch.where(hidden, 0.0, seen) * weights).sum(1) + form.intercept.to(values)
    if form.offset is not None:
        known = known + form.offset(seen)
    a = values.new_zeros(len(rows), m + 1)  # the last column takes what is observed
    a = a.scatter_add(1, torch.where(hidden, slots, m), -weights)
    is_hidden = own_slot >= 0
    own = torch.where(is_hidden, own_slot, m)[:, None]
    a = a.scatter_add(1, own, torch.ones_like(a[:, :1]))[:, :m]
    return a, torch.where(is_hidden, known, known - own_value)
