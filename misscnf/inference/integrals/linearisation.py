r"""The integrand around a point, linearised: where a proposal that looks ahead comes from.

As a function of the hidden values h of a component, in graph order, the integrand over noise is

    F(h) = log N(u(h); 0, I) + log e(h),

with u_i the noise that makes h_i from its parents. Every u_i, and the noise of every observed
number, is nearly linear in the few values of its family, u_i(h) ≈ u_i + a_i · (h − ĥ), so that

    F(h) ≈ F + g · (h − ĥ) − ½ (h − ĥ)ᵀ Λ (h − ĥ),      Λ = Σ_i a_i a_iᵀ,

which is the algebra of `closed_form` (and exact where that is), here at one point after another:
Gauss and Newton's method, known along a chain as the iterated extended Kalman smoother. A piece of
discrete evidence adds the positive part of minus the Hessian of its log-probability. The work
follows edges: each factor touches the entries of its own family only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import Mechanism, standard_normal_log_prob

__all__ = ["Linearisation", "linearise"]


class Linearisation(NamedTuple):
    """The integrand around S points of each component, in double precision. Sizes padded to m."""

    values: Tensor
    """(H, S) the points, ĥ"""
    log_target: Tensor
    """(C, S) F there"""
    centre: Tensor
    """(C, S, m) the points by components, zero for what is held and for padding"""
    noise: Tensor
    """(C, S, m) u there"""
    slopes: Tensor
    """(C, S, m, m) a_i, a row for each hidden cell: lower triangular"""
    gradient: Tensor
    """(C, S, m) g"""
    precision: Tensor
    """(C, S, m, m) Λ"""

    def where(self, better: Tensor, other: Linearisation, components: Components) -> Linearisation:
        """Returns this one where better (C, S) and the other elsewhere."""
        values = torch.where(better[components.cell_component], self.values, other.values)
        rest = []
        for mine, its in zip(self[1:], other[1:], strict=True):
            rest.append(
                torch.where(better.reshape(better.shape + (1,) * (mine.dim() - 2)), mine, its)
            )
        return Linearisation(values, *rest)

    def of_some(self, keep: Tensor, components: Components, size: int) -> Linearisation:
        """Returns that of some components (C,), padded to a smaller size."""
        log_target, *rest = (part[keep] for part in self[1:])
        cut = [x[..., :size] if x.dim() == 3 else x[..., :size, :size] for x in rest]
        return Linearisation(self.values[keep[components.cell_component]], log_target, *cut)

    def replaced(self, keep: Tensor, components: Components, by: Linearisation) -> Linearisation:
        """Returns it with what `of_some` took out replaced."""
        found = Linearisation(*(part.clone() for part in self))
        found.values[keep[components.cell_component]] = by.values
        size = by.centre.shape[-1]
        for mine, its in zip(found[1:], by[1:], strict=True):
            some = mine[keep]
            inner = some if its.dim() == 2 else some[..., :size]
            (inner if its.dim() < 4 else inner[..., :size, :]).copy_(its)
            mine[keep] = some
        return found


def linearise(sweep: Sweep, values: Tensor, noise: Tensor, width: float) -> Linearisation:
    """Linearises the integrand at values (H, S) of the hidden cells.

    Values whose mechanism cannot be inverted, such as discrete ones, are held. Their noise
    (C, S, m) is given, and moves by so much; that of other cells is found.
    """
    c, points = sweep.components, values.shape[1]
    m = int(c.size.max())
    sums = _Sums(len(c), points, m, noise.double(), width)
    for visit in sweep.visits:
        mechanism = sweep.model.mechanism(visit.node)
        own = values[visit.at] if visit.own is None else visit.own.expand(-1, points)
        parents = visit.parents(values).expand(-1, points, -1)
        slots = sweep.parent_slots(visit)
        if visit.own is None and mechanism.invertible:
            family = torch.cat([own[..., None], parents], -1)
            noise, slope = _slopes(_noise_of(mechanism), family)
            own_slot = sweep.slot[visit.at]
            sums.add_cells(sweep.cells(visit), own_slot, slots, own, noise, slope)
            continue
        component = sweep.cells(visit) if visit.own is None else visit.at
        if visit.cell is None:
            log_prob = mechanism.log_prob(own, parents)
            sums.log_target.index_add_(0, component, log_prob.double())
            continue
        evidence = _evidence if mechanism.invertible else _opaque_evidence
        log_prob, gradient, precision = evidence(mechanism, own, parents)
        sums.add_evidence(component, slots, log_prob, gradient, precision)
    return sums.result(values)


class _Sums:
    """What linearised factors add up to; the last place on each axis takes what is observed."""

    def __init__(self, count: int, points: int, m: int, noise: Tensor, width: float) -> None:
        def zeros(*shape: int) -> Tensor:
            return noise.new_zeros(count, points, *shape)

        self.size, self.noise, self.width = m, noise[..., :m].clone(), width
        self.log_target, self.centre, self.gradient = zeros(), zeros(m), zeros(m + 1)
        self.slopes, self.precision = zeros(m, m + 1), zeros(m + 1, m + 1)

    def add_cells(
        self,
        component: Tensor,
        own_slot: Tensor,
        slots: Tensor,
        own: Tensor,
        noise: Tensor,
        slope: Tensor,
    ) -> None:
        noise, slope = noise.double(), slope.double()
        self.centre[component, :, own_slot] = own.double()
        self.noise[component, :, own_slot] = noise
        family = torch.cat([own_slot[:, None], slots], 1)
        rows = self.slopes[component, :, own_slot]
        at = torch.where(family < 0, self.size, family)[:, None, :].expand_as(slope)
        self.slopes[component, :, own_slot] = rows.scatter_add(-1, at, slope)
        block = slope[..., :, None] * slope[..., None, :]
        log_prob = standard_normal_log_prob(noise)
        self.add_evidence(component, family, log_prob, -noise[..., None] * slope, block)

    def add_evidence(
        self, component: Tensor, slots: Tensor, log_prob: Tensor, gradient: Tensor, block: Tensor
    ) -> None:
        self.log_target.index_add_(0, component, log_prob.double())
        points, side = self.gradient.shape[1:]
        slots = torch.where(slots < 0, self.size, slots)[:, None, :]
        first = component[:, None] * points + torch.arange(points, device=component.device)
        first = first[..., None] * side + slots  # (n, S, q) in the flat gradient
        self.gradient.view(-1).index_add_(0, first.flatten(), gradient.double().flatten())
        place = first[..., :, None] * side + slots[..., None, :]
        self.precision.view(-1).index_add_(0, place.flatten(), block.double().flatten())

    def result(self, values: Tensor) -> Linearisation:
        m = self.size
        slopes, precision = self.slopes[..., :m], self.precision[..., :m, :m]
        # Cells that are held, and padding, have noise of their own.
        alone = (slopes.diagonal(dim1=-2, dim2=-1) == 0).double()
        found = (slopes + torch.diag_embed(alone), self.gradient[..., :m])
        precision = precision + torch.diag_embed(alone / self.width**2)
        return Linearisation(values, self.log_target, self.centre, self.noise, *found, precision)


def _noise_of(mechanism: Mechanism) -> Callable[[Tensor], Tensor]:
    """Returns the noise as a function of a value and its parents side by side."""
    return lambda family: mechanism.abduct(family[..., 0], family[..., 1:])


def _evidence(mechanism: Mechanism, own: Tensor, parents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns log φ (n, S), its gradient (n, S, p) by the parents and its precision (n, S, p, p).

    Gauss and Newton's precision, which is never negative: that of the noise's slopes.
    """
    noise, slopes = _slopes(_noise_of(mechanism), torch.cat([own[..., None], parents], -1))
    slope = slopes[..., 1:]
    precision = slope[..., :, None] * slope[..., None, :]
    if mechanism.normal_noise:  # log φ = log N(u) + log ∂u/∂x, and no parent moves the second
        log_prob = standard_normal_log_prob(noise) + slopes[..., 0].log()
        return log_prob, -noise[..., None] * slope, precision
    log_prob, gradient = _slopes(lambda x: mechanism.log_prob(own, x), parents)
    return log_prob, gradient, precision


def _opaque_evidence(
    mechanism: Mechanism, own: Tensor, parents: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the same without noise: the precision is the positive part of minus the Hessian."""
    with torch.enable_grad():
        x = parents.detach().requires_grad_()
        log_prob = mechanism.log_prob(own, x)
        gradient = _gradient(log_prob, x, create_graph=True)
        rows = [_gradient(part, x) for part in gradient.unbind(-1)]
    hessian = torch.nan_to_num(torch.stack(rows, -1).detach())
    values, vectors = torch.linalg.eigh(-0.5 * (hessian + hessian.transpose(-1, -2)))
    precision = (vectors * values.clamp(min=0.0)[..., None, :]) @ vectors.transpose(-1, -2)
    return log_prob.detach(), gradient.detach(), precision


def _gradient(of: Tensor, x: Tensor, *, create_graph: bool = False) -> Tensor:
    """Returns the gradient of each entry by its own row of x; zero where it does not depend."""
    if not of.requires_grad:
        return torch.zeros_like(x)
    found = torch.autograd.grad(
        of.sum(), x, create_graph=create_graph, retain_graph=True, allow_unused=True
    )[0]
    return torch.zeros_like(x) if found is None else found


def _slopes(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns a function of the last axis, (n, S), and its gradient, (n, S, q).

    Where the function leaves torch on its way, as special functions of other packages do, its
    gradient comes from differences.
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        found = function(x)
        if found.requires_grad:
            return found.detach(), _gradient(found, x).detach()
    x = x.detach()
    step = torch.finfo(x.dtype).eps ** (1 / 3) * (1.0 + x.abs())
    columns = []
    for j in range(x.shape[-1]):
        aside = torch.zeros_like(x)
        aside[..., j] = step[..., j]
        columns.append((function(x + aside) - function(x - aside)) / (2.0 * step[..., j]))
    return found, torch.stack(columns, -1) if columns else torch.zeros_like(x)
