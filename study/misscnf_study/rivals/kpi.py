r"""KPI: filled cells are parameters, moved until kernels predict the cells that are seen.

    pred = K_ts (K_ss + λ I)⁻¹ y_s,    k(u, v) = Σ_e π_e exp(−|u − v|² / (2 σ_e²))

is kernel ridge regression of a column j on the others, from B rows s to B others t, with mixing
weights π of its own for K_ts and for K_ss. An epoch is one step of Adam on all filled cells and
all mixing weights; its loss is the mean of (y_t − pred)² over the targets that are seen, over all
columns and two pairs of batches for each. Filled cells have a say in what is predicted from and
in what is learned from. They start at the mean of their nearest rows.

When to stop? A share of the observed cells is hidden, from the nearest neighbours too; the filled
table that comes closest to them is the answer, in which they are put back. (The authors' code
stops where the truth of the missing cells is closest. `oracle_truth` does so, for comparison with
printed numbers alone.)

Presets: "paper" is the paper's (Appendix "Implementation details"); "fast" seeks neighbours among
5,000 rows only. A step moves a cell by at most about its rate, 0.01 deviations, and reaches only
the rows of its batches, so that on many rows the answer stays near the neighbours' means.

References:
    Wang et al., 2025 (KPI, as the paper cites it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.impute import KNNImputer
from torch import Tensor

from misscnf import InputError
from misscnf.draws import derive_generator, normal_numbers
from misscnf_study.rivals.contract import Floats
from misscnf_study.rivals.learned import LearnedImputer, Watch, choose_preset, positive

__all__ = ["Kpi", "KpiSettings", "Kernels", "PRESETS", "ridge_prediction"]

MEGABYTES = 64
"""Distances to neighbours are computed in pieces of this size."""
ENTRIES_AT_ONCE = 262_144
"""Entries of kernels that are computed at once, for each bandwidth."""


@dataclass(frozen=True)
class KpiSettings:
    """How cells are moved; the defaults are the paper's."""

    epochs: int = 500
    """At most so many steps."""
    pairs: int = 2
    """Pairs of batches for each column in a step."""
    batch: int = 128
    """Rows in a batch; at most half of the table's."""
    rate: float = 1e-2
    """Adam's learning rate."""
    ridge: float = 1.0
    """λ."""
    bandwidths: tuple[float, ...] = (0.01, 0.1, 5.0, 10.0, 100.0, 1000.0, 1e4)
    """σ_e, in deviations of the columns."""
    patience: int = 10
    """It ends after so many steps that come no closer to the held-out cells."""
    held_out: float = 0.05
    """The share of observed cells that are held out."""
    neighbours: int = 10
    """Rows whose mean a cell starts at, the nearer the heavier."""
    donors: int | None = None
    """Among how many rows, drawn at random, the nearest are sought; among all if None."""
    noise: float = 1e-4
    """The deviation of what is added to it."""

    def __post_init__(self) -> None:
        positive(self, "epochs", "pairs", "batch", "rate", "ridge", "patience", "neighbours")
        if not self.bandwidths or min(self.bandwidths) <= 0.0 or not 0.0 < self.held_out < 1.0:
            raise InputError(
                f"bandwidths are positive, at least one, and the share held out is between 0 and "
                f"1; got {self.bandwidths} and {self.held_out}."
            )


PRESETS = {"paper": KpiSettings(), "fast": KpiSettings(epochs=200, donors=5000)}


class Kernels(NamedTuple):
    """Mixed Gaussian kernels, with the mixing weights as logits (E,)."""

    bandwidths: Tensor
    """(E,)"""
    across: Tensor
    """Of K_ts."""
    within: Tensor
    """Of K_ss."""


class Regression(NamedTuple):
    """A column, rows to learn it from and rows to predict it in, (B,) each."""

    column: int
    sources: Tensor
    targets: Tensor


def mix(squares: Tensor, bandwidths: Tensor, logits: Tensor) -> Tensor:
    """Returns Σ_e softmax(logits)_e exp(−squares / (2 σ_e²))."""
    total = torch.zeros_like(squares)
    for weight, width in zip(logits.softmax(0), bandwidths, strict=True):
        total = total + weight * torch.exp(squares / (-2.0 * width**2))
    return total


def squared_distances(u: Tensor, v: Tensor) -> Tensor:
    """Returns |u_i − v_j|² of points (…, n, d) and (…, m, d), (…, n, m)."""
    lengths = (u**2).sum(dim=-1)[..., :, None] + (v**2).sum(dim=-1)[..., None, :]
    return (lengths - 2.0 * u @ v.mT).clamp(min=0.0)


def ridge_prediction(
    targets: Tensor, sources: Tensor, known: Tensor, kernels: Kernels, ridge: float
) -> Tensor:
    """Returns K_ts (K_ss + λ I)⁻¹ y_s.

    Arguments:
        targets: (…, B, d)
        sources: (…, B, d)
        known: (…, B), the values of the sources.
        kernels: The kernels.
        ridge: λ.
    """
    bandwidths, across, within = kernels
    gram = mix(squared_distances(sources, sources), bandwidths, within)
    gram = gram + ridge * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    solved = torch.cholesky_solve(known[..., None], torch.linalg.cholesky(gram))
    return (mix(squared_distances(targets, sources), bandwidths, across) @ solved)[..., 0]


class Cells:
    """A table whose filled cells are parameters, and the kernels that move them.

    Arguments:
        table: (N, d) standardised, complete.
        free: (N, d), which cells may move.
        settings: How they move.
        generator: On the device of the table.
        learned: What the table is predicted from, if not from itself: then the learned cells and
            their kernels stay as they are.
    """

    def __init__(
        self,
        table: Tensor,
        free: Tensor,
        settings: KpiSettings,
        generator: torch.Generator,
        learned: Cells | None = None,
    ) -> None:
        self.table, self.free, self.settings = table.clone(), free, settings
        self.generator, self.learned = generator, learned
        if learned is None:
            bandwidths = torch.tensor(settings.bandwidths, dtype=table.dtype, device=table.device)
            logits = normal_numbers((2, len(bandwidths)), generator, table)
            self.kernels = Kernels(bandwidths, *(one.clone().requires_grad_() for one in logits))
        else:
            self.kernels = Kernels(*(one.detach() for one in learned.kernels))
        self.filled = self.table[free].requires_grad_()
        moved = [self.filled, *(one for one in self.kernels if one.requires_grad)]
        self.optimiser = torch.optim.Adam(moved, lr=settings.rate)

    def step(self) -> bool:
        """Moves all cells and mixing weights once; returns whether the loss is finite."""
        self.optimiser.zero_grad(set_to_none=True)
        table = self.table.clone().requires_grad_()
        source = table if self.learned is None else self.learned.table
        regressions = list(self._draw(len(source)))
        count = sum(int((~self.free[t, j]).sum()) for j, _, t in regressions)
        loss = torch.zeros((), dtype=table.dtype, device=table.device)
        for some in _groups(regressions):
            squares = self._squares(table, source, some) / max(count, 1)
            squares.backward()
            loss += squares.detach()
        if not bool(torch.isfinite(loss)) or table.grad is None:
            return False
        self.filled.grad = table.grad[self.free]
        self.optimiser.step()
        self.table[self.free] = self.filled.detach()
        return True

    def _draw(self, sources: int) -> Iterator[Regression]:
        def rows(n: int) -> Tensor:
            order = torch.randperm(n, generator=self.generator, device=self.table.device)
            return order[: batch_size(n, self.settings.batch)]

        for _ in range(self.settings.pairs):
            for j in range(self.table.shape[1]):
                yield Regression(j, rows(sources), rows(len(self.table)))

    def _squares(self, table: Tensor, source: Tensor, some: Sequence[Regression]) -> Tensor:
        """Returns the sum of squared errors over the seen targets of regressions."""
        j = torch.tensor([one.column for one in some], device=table.device)[:, None]
        s = torch.stack([one.sources for one in some])
        t = torch.stack([one.targets for one in some])
        others = (torch.arange(table.shape[1], device=table.device) != j)[:, None, :]
        # A column of zeros adds nothing to a distance: so the target has no say.
        pred = ridge_prediction(
            table[t] * others, source[s] * others, source[s, j], self.kernels, self.settings.ridge
        )
        return (~self.free[t, j] * (self.table[t, j] - pred) ** 2).sum()


def batch_size(rows: int, wanted: int) -> int:
    """Returns the rows of a batch: at most half of the table's, and then a power of two.

    Example:
        >>> [batch_size(rows, 128) for rows in (1, 2, 80, 255, 256)]
        [1, 1, 32, 64, 128]
    """
    return wanted if wanted <= rows / 2 else 2 ** max(0, (rows // 2).bit_length() - 1)


def _groups(regressions: list[Regression]) -> Iterator[list[Regression]]:
    first = regressions[0]
    many = max(1, ENTRIES_AT_ONCE // (len(first.sources) * len(first.targets)))
    for start in range(0, len(regressions), many):
        yield regressions[start : start + many]


@final
class Kpi(LearnedImputer):
    """Fills with cells that kernels have moved.

    The table learned from comes back with the cells that came closest. New rows start at their
    neighbours' means and take as many steps, predicted from the learned table; this and its
    kernels stay as they are.

    Arguments:
        preset: A key of `PRESETS`, or settings.
        oracle_truth: The table before anything was lost. Cells then stop where the truth is
            closest, which no user can know: for comparison with printed numbers alone.
        device: Where cells are moved, such as "cpu" or "cuda".
        watch: Called as training goes on.
    """

    def __init__(
        self,
        preset: str | KpiSettings = "fast",
        *,
        oracle_truth: pd.DataFrame | None = None,
        device: str = "cpu",
        watch: Watch | None = None,
    ) -> None:
        super().__init__(device, watch)
        self.settings = choose_preset(preset, PRESETS, "KPI")
        self.oracle_truth = oracle_truth

    def _train_and_fill(self, values: Floats) -> Floats:
        z = self._units.standardise(values)
        held_out = self._hold_out(~np.isnan(z))
        start = np.where(held_out, np.nan, z)
        self._neighbours = self._find_neighbours(start)
        table = self._neighbour_means(start, "noise")
        free = torch.as_tensor(np.isnan(start), device=self.device)
        self._cells = Cells(table, free, self.settings, self._generator("steps"))
        self._steps = self._move(*self._judges(z, held_out))
        self._cells.table[:] = torch.where(
            torch.as_tensor(held_out), torch.as_tensor(z), self._cells.table.cpu()
        ).to(self.device)
        return self._units.restore(self._cells.table)

    def _fill_new(self, values: Floats) -> Floats:
        z = self._units.standardise(values)
        free = torch.as_tensor(np.isnan(z), device=self.device)
        table = self._neighbour_means(z, "new noise")
        cells = Cells(table, free, self.settings, self._generator("new steps"), self._cells)
        for step in range(1, self._steps + 1):
            if not cells.step():
                break
            self._watch("new rows", step, self._steps)
        return self._units.restore(cells.table)

    def _move(self, truth: Tensor, judges: Tensor) -> int:
        """Moves cells until they come no closer to the truth; returns the best number of steps."""
        s, cells = self.settings, self._cells
        if not bool(judges.any()):
            return 0  # nobody can say whether a step does any good
        best, best_table, best_step = float("inf"), cells.table.clone(), 0
        for step in range(s.epochs + 1):
            error = float((cells.table - truth)[judges].abs().mean())
            if error < best:
                best, best_table, best_step = error, cells.table.clone(), step
            self._watch("training", step, s.epochs)
            if step - best_step >= s.patience or step == s.epochs or not cells.step():
                break
        cells.table = best_table
        return best_step

    def _hold_out(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns which observed cells are hidden; never all of a column."""
        generator = np.random.default_rng(self._generator("held out").initial_seed())
        chance = generator.random(observed.shape)
        share = self.settings.held_out
        held = np.zeros_like(observed)
        for j, column in enumerate(observed.T):
            rows = np.flatnonzero(column)
            many = min(round(share * len(rows)) or 1, len(rows) - 1)
            held[rows[np.argsort(chance[rows, j], kind="stable")[:many]], j] = True
        return held

    def _judges(self, z: Floats, held_out: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Returns the values that cells are held against, and at which cells."""
        if self.oracle_truth is None:
            truth, judges = z, held_out
        else:
            truth = self._units.standardise(_read_truth(self.oracle_truth, self._columns, z.shape))
            judges = np.isnan(z) | held_out
        return (
            torch.as_tensor(np.nan_to_num(truth), device=self.device),
            torch.as_tensor(judges, device=self.device),
        )

    def _find_neighbours(self, z: Floats) -> KNNImputer:
        s = self.settings
        if s.donors is not None and len(z) > s.donors:
            generator = np.random.default_rng(self._generator("donors").initial_seed())
            z = z[generator.choice(len(z), s.donors, replace=False)]
        return KNNImputer(
            n_neighbors=s.neighbours, weights="distance", keep_empty_features=True
        ).fit(z)

    def _neighbour_means(self, z: Floats, purpose: str) -> Tensor:
        with config_context(working_memory=MEGABYTES):
            filled = torch.as_tensor(self._neighbours.transform(z))
        noise = normal_numbers(filled.shape, derive_generator(self._seed, "kpi", purpose), filled)
        noisy = filled + self.settings.noise * noise
        return torch.where(torch.as_tensor(np.isnan(z)), noisy, filled).to(self.device)

    def _generator(self, purpose: str) -> torch.Generator:
        return derive_generator(self._seed, "kpi", purpose, device=self.device)


def _read_truth(truth: pd.DataFrame, columns: list, shape: tuple[int, ...]) -> Floats:
    if len(truth) != shape[0] or not set(columns) <= set(truth.columns):
        raise InputError(
            f"oracle_truth is the table of {shape[0]} rows before anything was lost, with the "
            f"columns {', '.join(map(str, columns))}; got {len(truth)} rows of "
            f"{', '.join(map(str, truth.columns))}."
        )
    return truth[columns].to_numpy(dtype=np.float64)
