r"""How hard to work on an integral over hidden nodes: every number that shapes it.

An `Effort` says how many points an integral gets, when it is good enough, and by which rules each
way of integrating goes about it; it is passed to all of them. `Efforts` holds one effort for each
task of the package, with its reason: a training step needs draws of the posterior, a reported
log-density needs three digits. Both are part of the settings that are saved with a model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from misscnf import options

__all__ = ["Effort", "EnumerationRules", "QuadratureRules", "HermiteRules", "ImportanceRules"]
__all__ += ["Efforts", "ALGORITHM_1"]


@dataclass(frozen=True)
class EnumerationRules:
    """When the joint states of hidden discrete nodes are summed, and how far counts go."""

    most_states: int = 16384
    """A component with more joint states is drawn: its sum would cost more than draws do."""
    most_integrals: int = 1024
    """The same for a factor that needs an integral at each state, which costs more than a
    table's entry."""
    worth_keeping: float = 100.0
    """A count is cut by its prior, and evidence may want larger ones: it gets twice the states
    while its largest one has more posterior probability than this many times `Effort.tail`."""


@dataclass(frozen=True)
class QuadratureRules:
    """How one hidden number is integrated by points along a line."""

    fewest_points: int = 20
    """Of one randomisation. On the first window their spacing is 0.65, and a bulk of more than
    half the prior's width is resolved at once."""
    draws_a_point: int = 4
    """Equally spaced points are worth several quasi-random ones: one for so many draws."""
    half_window: float = 6.5
    """The first points lie within ± this, where the prior has all but 1e-10 of its mass."""
    enough: float = 3.0
    """Effective points of a randomisation that suffice: at equal spacing h they mean a bulk of
    width 0.85 h, and errors below 1e-6."""
    depth: float = 20.0
    """So many nats below its top an integrand no longer matters: less than 1e-8 of its mass."""
    rough_depth: float = 8.0
    """The same where no tolerance is asked for."""
    steepest: float = 3.0
    """The interpolated density falls by at most so many nats between two knots, so that points
    cover all of what lies between; twice as many once it is flattened."""
    below: float = 100.0
    """Where the integrand is zero, it counts as so many nats below its lowest other knot."""
    floor: float = 30.0
    """The interpolated density is nowhere lower than so many nats below its top, so that it is
    never zero."""


@dataclass(frozen=True)
class HermiteRules:
    """How a few hidden numbers are integrated around their closed form."""

    points: int = 0
    """Of a rule along an axis, at first; none where this way is not gone."""
    most_points: int = 24
    """Along an axis. Evidence that asks for more is steep, and steep evidence is no polynomial."""
    most_together: int = 256
    """On all axes together: with more, draws cost less."""
    error: float = 1e-5
    """Of an integral, relative: what the last coefficients say that the rule leaves out. They say
    too much as a rule: a table's mean log-density is right to eight digits."""


@dataclass(frozen=True)
class ImportanceRules:
    """How the proposal of importance sampling is made."""

    prior_share: float = 1 / 8
    """α, the share of the points that still come from the prior, at least: it bounds weights."""
    most_prior: float = 1 / 4
    """It is larger, up to this, where such a share of the points so far is effective: there the
    prior has the right tails, and a mode says little of the rest."""
    enough_pilots: float = 32.0
    """Effective draws of the prior that show all modes of some weight."""
    pilot_growth: int = 4
    """Until there are as many, a component gets so many times the draws of the prior again."""
    most_nodes: int = 4
    """Components with more hidden nodes get no more pilot draws: few points say nothing of modes
    there."""
    useful_share: float = 1 / 8
    """Where fewer of the points under a guide are effective, modes are searched anew from these,
    before more are drawn."""
    least_share: float = 0.05
    """Of a mode in the mixture: Laplace's approximation of its mass may be off."""
    starts: int = 4
    """Points from which modes are searched: heavy ones that are far from each other."""
    flat: float = 0.25
    """For that, weights are tempered until such a share of the points is effective: near the best
    one, all are alike."""
    most_steps: int = 10
    """Of a search; a mode that is not quite reached is still a proposal."""
    rise: float = 0.1
    """A search is over where the top of the parabola is not so many nats higher."""
    damping: float = 0.1
    """Of the first step that did not rise, as a share of the curvature; ten times more after
    each further one."""
    held_width: float = 0.7
    """Standard deviation of the noise of discrete cells around that of a start: they are held in a
    search."""
    same_mode: float = 1.0
    """Squared distance, in standard deviations, below which two searches have found one mode."""
    remembered: int = 2
    """Modes of a component that are remembered where the same rows are integrated again."""
    depth: float = 15.0
    """Modes whose mass is so many nats smaller are left out."""


@dataclass(frozen=True)
class Effort:
    """How hard to work on what cannot be integrated in closed form."""

    draws: int = 64
    """Points in one randomisation."""
    randomisations: int = 1
    """Independent randomisations; the standard error needs several."""
    least_effective: float = 20.0
    """Draws double until the effective sample size of a randomisation is as large."""
    effective_share: float = 0.75
    """Where fewer points than that are drawn, it is enough if such a share is effective."""
    tolerance: float | None = None
    """Draws double until the standard error of a component is below this too."""
    limit: int = 4096
    """The most points a component gets in one randomisation; falling short is said."""
    pilot_draws: int = 0
    """Points of the prior, over all randomisations, that a component of few nodes may get before
    importance sampling: what they do not see, a proposal will not propose."""
    adapt: bool = True
    """Whether draws follow need; otherwise exactly `draws` from the prior."""
    tail: float = 1e-6
    """Sums over counts leave out at most so much of their mass."""
    independent: bool = False
    """Whether points are independent (the paper's) instead of quasi-random."""
    closed_form: bool = True
    """Whether linear-Gaussian components are integrated in closed form."""
    points_a_draw: int = 4
    """Points for each completion that is drawn from them, at least: completions of a row are then
    hardly ever the same point twice."""
    rows_at_once: int = 4096
    """Rows that are evaluated together: it bounds memory, and says which random numbers they
    get."""
    cells_at_once: int = 2**22
    """Hidden cells × points that are held together, for the same reasons."""
    enumeration: EnumerationRules = EnumerationRules()
    quadrature: QuadratureRules = QuadratureRules()
    hermite: HermiteRules = HermiteRules()
    importance: ImportanceRules = ImportanceRules()

    def doubled(self) -> Effort:
        """Returns the same effort with twice the draws, up to the limit."""
        return replace(self, draws=min(2 * self.draws, max(self.limit, self.draws)))

    def even(self) -> Effort:
        """Returns an effort that takes as many points for every integral, however good they are.

        An integral that takes more points on one side of a place than on the other has a step
        there. Without steps a search ends at a maximum.
        """
        points = min(self.hermite.most_points, math.isqrt(self.hermite.most_together))
        rules = (
            replace(self.hermite, points=points, error=math.inf) if self.hermite.points else None
        )
        return replace(self, least_effective=0.0, hermite=rules or self.hermite)

    def for_completions(self, count: int) -> Effort:
        """Returns an effort with points enough for so many completions of each row."""
        times = 1
        while times * self.draws < self.points_a_draw * count:
            times *= 2
        return self.times(times)

    def times(self, share: float) -> Effort:
        """Returns so many times the effort."""
        return replace(
            self,
            draws=round(share * self.draws),
            least_effective=share * self.least_effective,
            limit=round(share * self.limit),
            pilot_draws=round(share * self.pilot_draws),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return options.to_dict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Effort:
        """Reads what `to_dict` wrote."""
        return options.from_dict(Effort, data)


@dataclass(frozen=True)
class Efforts:
    """One effort for each task."""

    training: Effort = Effort(importance=ImportanceRules(starts=2, most_steps=4))
    """A step of training: draws of the posterior, again and again; chains of them make few do."""
    validation: Effort = Effort(draws=128, hermite=HermiteRules(5))
    """The held-out likelihood after an epoch: twice the draws, since it compares epochs."""
    linear: Effort = Effort(
        draws=64, least_effective=20.0, limit=1024, rows_at_once=8192, hermite=HermiteRules(5)
    )
    """A step of the generalised linear fit, under the same random numbers in every step."""
    completions: Effort = Effort(
        draws=64, least_effective=32.0, limit=4096, pilot_draws=4096, rows_at_once=8192
    )
    """Completions that fits reweigh for many steps: they should know every mode."""
    fine_completions: Effort = Effort(
        draws=256, least_effective=128.0, limit=16384, pilot_draws=4096, rows_at_once=8192
    )
    """The same near the maximum, where the error of the draws is what is left."""
    evaluation: Effort = Effort(
        draws=16,
        randomisations=16,
        least_effective=4.0,
        tolerance=3e-3,
        limit=2048,
        pilot_draws=1024,
        tail=1e-12,
    )
    """A reported log-density: draws double until the standard error of a component is below
    0.003."""
    imputation: Effort = Effort(
        draws=256, least_effective=64.0, limit=8192, pilot_draws=4096, tail=1e-9, rows_at_once=1024
    )
    """Completions for imputations and counterfactuals: many more effective points than draws."""
    joint: bool = False
    """Whether all that is hidden in a row is averaged jointly, as Algorithm 1 prints it."""


ALGORITHM_1 = Effort(draws=512, adapt=False, independent=True, closed_form=False)
"""The paper's: 512 independent draws from the prior."""
