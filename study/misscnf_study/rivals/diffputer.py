r"""DiffPuter: a diffusion model of the completed table draws what is hidden, round by round.

    M-step    fit D(x; σ) to the rows, their holes filled by the round before (`edm`)
    E-step    x_hidden ← the mean of several draws from the model given x_observed

Holes start at their column's mean, and the answer is the E-step of the last round. Columns are
standardised by their observed cells to a deviation of ½. Two readouts:

- "mean", the paper's: the mean of the draws, in every round. It forgets the spread around itself,
  and from the second round on the model learns from rows that have forgotten it.
- "draw": one draw, in every round, so that completed rows are as wide as the model says.

Presets: "paper" is the paper's (Appendix "Implementation details"), about a week on two cores for
20,000 rows. "fast" has a narrow network, which each round trains a little further instead of anew
(so it can have more rounds), and a shorter walk that begins and ends nearer to the data.

Both walks are only nearly exact, even with a perfect network: known and hidden coordinates settle
on one another as steps repeat. On Gaussians with correlations of 0.8 and 0.98 draws of the paper's
walk are 5 and 8 % too wide, those of the fast one 8 and 16 %. And rounds are slow to forget the
means that they began with: at 60 % of holes in 2,000 rows of the study's chain and triangle, the
variance of draws is 1.5 and 4 times the truth's, most of it in the tails (benchmarks/imputers.py);
more and shorter rounds come closer.

References:
    Zhang et al., DiffPuter: empowering diffusion models for missing data imputation, 2025.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from torch import Tensor

from misscnf import InputError
from misscnf.draws import derive_generator
from misscnf_study.rivals.contract import Floats
from misscnf_study.rivals.edm import SPREAD, Denoiser, denoising_loss, sample_hidden
from misscnf_study.rivals.learned import LearnedImputer, Watch, choose_preset, positive

__all__ = ["DiffPuter", "DiffusionSettings", "PRESETS"]

DRAWS_AT_ONCE = 65_536
"""Draws are made and averaged in pieces of so many rows."""


@dataclass(frozen=True)
class DiffusionSettings:
    """How the model is trained and how it draws; the defaults are the paper's."""

    rounds: int = 5
    """M-steps and E-steps."""
    trials: int = 10
    """Draws whose mean fills a hole."""
    width: int = 1024
    """Channels of the network, an even number."""
    epochs: int = 10_001
    """At most so many passes over the rows in an M-step."""
    patience: int = 500
    """An M-step ends after so many epochs without a lower loss."""
    batch: int = 4096
    """Rows in a step of training."""
    rate: float = 1e-4
    """Adam's learning rate to begin with."""
    calm: int = 50
    """Epochs without a lower loss after which the rate falls."""
    fall: float = 0.9
    """What the rate is multiplied with."""
    warm: bool = False
    """Whether a round trains the network of the round before further."""
    steps: int = 50
    """Levels of noise in a walk."""
    repeats: int = 20
    """How often each step of a walk but the last is taken."""
    churn: float = 1.0
    """Noise added before each step (`edm`)."""
    levels: tuple[float, float] = (80.0, 0.002)
    """The first and the last noise of a walk."""

    def __post_init__(self) -> None:
        positive(self, "rounds", "trials", "width", "epochs", "patience", "batch", "rate")
        positive(self, "repeats")
        if self.steps < 2 or self.width % 2 or not 0.0 < self.levels[1] < self.levels[0]:
            raise InputError(
                f"a walk has at least 2 steps and falling levels of noise, a network an even "
                f"width; got {self.steps}, {self.levels} and {self.width}."
            )


PRESETS = {
    "paper": DiffusionSettings(),
    "fast": DiffusionSettings(
        rounds=8,
        trials=5,
        width=64,
        epochs=60,
        patience=60,
        batch=256,
        rate=1e-3,
        calm=10,
        fall=0.7,
        warm=True,
        steps=16,
        repeats=12,
        levels=(3.0, 0.01),
    ),
}


@final
class DiffPuter(LearnedImputer):
    """Fills with what a diffusion model of the table draws.

    The table learned from comes back as the last round left it; other tables are drawn from the
    last network.

    Arguments:
        preset: A key of `PRESETS`, or settings.
        readout: "mean" for the mean of several draws, "draw" for one.
        device: Where to train and draw, such as "cpu" or "cuda".
        watch: Called as training goes on.
    """

    def __init__(
        self,
        preset: str | DiffusionSettings = "fast",
        *,
        readout: Literal["mean", "draw"] = "mean",
        device: str = "cpu",
        watch: Watch | None = None,
    ) -> None:
        super().__init__(device, watch)
        self.settings = choose_preset(preset, PRESETS, "DiffPuter")
        if readout not in ("mean", "draw"):
            raise InputError(f"DiffPuter's readouts are mean, draw; got {readout!r}.")
        self.readout = readout

    def draw(self, values: Floats, count: int) -> Floats:
        """Returns draws of what is hidden in values (N, d), (count, N, d), in their order."""
        z, observed = self._read_units(values, SPREAD)
        rows = ~observed.all(dim=1)
        drawn = z.expand(count, *z.shape).clone()
        drawn[:, rows] = self._sample(z[rows], observed[rows], count, self._generator("draws"))
        return self._units.restore(drawn / SPREAD)

    def _train_and_fill(self, values: Floats) -> Floats:
        z, observed = self._read_units(values, SPREAD)
        network = None
        for number in range(1, self.settings.rounds + 1):
            network = self._train(z, network, number)
            self._network = network
            z = self._expect(z, observed, f"round {number}")
            if bool(observed.all()):
                break  # there is nothing that a further round would see anew
        return self._units.restore(z / SPREAD)

    def _fill_new(self, values: Floats) -> Floats:
        z, observed = self._read_units(values, SPREAD)
        return self._units.restore(self._expect(z, observed, "new rows") / SPREAD)

    # The M-step.

    def _train(self, rows: Tensor, network: Denoiser | None, number: int) -> Denoiser:
        s, best = self.settings, float("inf")
        if network is None or not s.warm:
            start = derive_generator(self._seed, "diffputer", "network", number)
            network = Denoiser(rows.shape[1], s.width, start).to(self.device)
        kept, since = copy.deepcopy(network.state_dict()), 0
        generator = self._generator("train", number)
        optimiser = torch.optim.Adam(network.parameters(), lr=s.rate, fused=True)
        falling = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser, factor=s.fall, patience=s.calm
        )
        for epoch in range(1, s.epochs + 1):
            loss = self._epoch(network, rows, optimiser, generator)
            if not np.isfinite(loss):
                raise InputError(
                    f"DiffPuter's loss is {loss} in epoch {epoch} of round {number}; "
                    f"give a learning rate below {s.rate:g}."
                )
            falling.step(loss)
            since += 1
            if loss < best:
                best, since = loss, 0
                kept = copy.deepcopy(network.state_dict())
            self._watch(f"round {number}: training", epoch, s.epochs)
            if since >= s.patience:
                break
        network.load_state_dict(kept)
        return network

    def _epoch(
        self,
        network: Denoiser,
        rows: Tensor,
        optimiser: torch.optim.Optimizer,
        generator: torch.Generator,
    ) -> float:
        """Takes a pass over the rows and returns the mean loss."""
        total = torch.zeros((), device=rows.device)
        order = torch.randperm(len(rows), generator=generator, device=rows.device)
        for batch in order.split(self.settings.batch):
            optimiser.zero_grad(set_to_none=True)
            loss = denoising_loss(network, rows[batch], generator)
            loss.backward()
            optimiser.step()
            total += loss.detach() * len(batch)
        return float(total) / len(rows)

    # The E-step.

    def _expect(self, z: Tensor, observed: Tensor, purpose: str) -> Tensor:
        """Returns z with its holes filled; only rows that have holes are drawn."""
        rows = torch.nonzero(~observed.all(dim=1)).squeeze(1)
        trials = self.settings.trials if self.readout == "mean" else 1
        filled = z.clone()
        blocks = rows.split(max(1, DRAWS_AT_ONCE // trials)) if len(rows) else ()
        generator = self._generator("draw", purpose)
        for k, block in enumerate(blocks, start=1):
            filled[block] = self._sample(z[block], observed[block], trials, generator).mean(dim=0)
            self._watch(f"{purpose}: drawing", k, len(blocks))
        return filled

    def _sample(
        self, z: Tensor, observed: Tensor, trials: int, generator: torch.Generator
    ) -> Tensor:
        """Returns draws (trials, N, d); trials are further rows of one table."""
        s = self.settings
        drawn = sample_hidden(
            self._network,
            z.repeat(trials, 1),
            observed.repeat(trials, 1),
            generator,
            steps=s.steps,
            repeats=s.repeats,
            churn=s.churn,
            levels=s.levels,
        )
        return drawn.reshape(trials, *z.shape)

    def _generator(self, *purpose: str | int) -> torch.Generator:
        return derive_generator(self._seed, "diffputer", *purpose, device=self.device)
