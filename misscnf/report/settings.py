r"""Every number that shapes a page, with the reason beside it.

    write_report(model, df, "report.html", settings={"effects.most_groups": 4})

The page lists them all in its last section, so that it can be made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from misscnf.identification.settings import CheckSettings

__all__ = ["ReportSettings", "EffectRules", "FitChecks", "Limits"]


@dataclass(frozen=True)
class EffectRules:
    """What is asked of the model, and in whom."""

    draws: int = 20_000
    """Units of an effect: the Monte-Carlo error is far below any sampling error then."""
    draws_of_parts: int = 5_000
    """Of a group: each replicate of the fit is asked for all of them."""
    draws_of_curve: int = 5_000
    """The same along a curve, at each of its values."""
    draws_of_band: int = 1000
    """And for the width of its band: all replicates see the same units, so that their number
    hardly moves the spread between them."""
    grid: int = 15
    """Values along a dose-response curve."""
    compared: tuple[float, float] = (0.25, 0.75)
    """The quantiles of a numeric treatment that are compared: both are common."""
    range: tuple[float, float] = (0.025, 0.975)
    """The quantiles between which a curve is drawn: beyond, hardly a row tells."""
    most_groups: int = 8
    """Lines of groups in the forest plot."""
    most_contrasts: int = 6
    """Levels of a treatment that are compared with the most frequent one."""
    few_levels: int = 3
    """A column with more is split at its median."""
    few_named_levels: int = 12
    """The same of a column that was asked for: all its levels are wanted then."""
    least_share: float = 0.05
    """Smaller groups are left out: little is known about them."""


@dataclass(frozen=True)
class FitChecks:
    """The checks of the fit that the rows themselves can make."""

    noise_rows: int = 500
    """Rows that the noise is abducted of: with many more, departures too small to matter alarm."""
    hidden_rows: int = 1000
    """Rows in which one value is hidden."""
    integral_rows: int = 100
    """Rows whose log-density is worked out: whether draws suffice shows in some of them."""
    draws: int = 49
    """Draws of a hidden value: ranks 0 to 49, which tenths divide."""
    level: float = 0.01
    """Chance of one false alarm in all tests of a kind."""
    fewest: int = 20
    """Values that a test needs."""
    enough_draws: float = 30.0
    """Fewer effective draws leave an error of a row's log-density that matters."""


@dataclass(frozen=True)
class Limits:
    """How much the page shows."""

    most_lines: int = 6
    """Of a list; the others are folded."""
    most_arms: int = 4
    """Of a treatment in Table 1: more columns fit no screen."""
    most_levels: int = 6
    """Of a column in Table 1; the rest of a long list of levels tells little."""
    most_noise: int = 12
    """Panels of noise; the table beside them has every node."""
    most_regions: int = 12
    most_patterns: int = 12
    most_columns: int = 30
    """In the picture of patterns; with more, only those that the patterns lack."""
    quantiles: int = 120
    """Points of noise in a panel: as many as the eye tells apart."""
    rank_bins: int = 10
    chance_band: float = 0.95
    """Of the heights that chance leaves."""


@dataclass(frozen=True)
class ReportSettings:
    """All of them, in groups."""

    effects: EffectRules = EffectRules()
    checks: FitChecks = FitChecks()
    limits: Limits = Limits()
    identification: CheckSettings = field(default_factory=CheckSettings)
    """What the holes leave known, as `misscnf.check` finds it."""
