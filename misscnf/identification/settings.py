r"""Every number that shapes a check, with the reason beside it.

    check(df, graph, settings={"independences.level": 0.01, "regions.share": 0.05})

A report keeps the settings that it was made with (`Report.settings`, and in its JSON), so that it
can be made again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from misscnf.errors import InputError

__all__ = ["CheckSettings", "RegionRules", "StructuralRules", "LossRules", "LittleRules"]
__all__ += ["IndependenceRules", "SupportRules", "UnlikelyRules", "Telling"]


@dataclass(frozen=True)
class RegionRules:
    """Where a family counts as unseen, and how such regions are searched for."""

    chance: float = 0.02
    """A family counts as unseen where the chance to see it whole is below this: 149 rows without
    it are enough to say so, which is within reach of a small study."""
    share: float = 0.02
    """Of the rows: smaller regions are left alone, since little of an answer hangs on them."""
    level: float = 0.95
    """Of the upper bound of the chance."""
    vague_level: float = 0.99
    """The same where the edge of a region is vague: chances that fall off slowly tempt a search
    too far."""
    sharp: float = 0.2
    """An edge is sharp if the chance beside the region is at least this."""
    luck: float = 0.005
    """How many regions of a family may be expected from chance alone."""
    thin: float = 0.1
    few: int = 30
    """A place is told though nothing is flagged if fewer than this share, or so few rows, show the
    family there, half as often as elsewhere: an answer hangs on those rows."""
    fractions: tuple[float, ...] = (0.1, 0.7)
    """Of the chance: what is searched for are regions with no more than these, about."""
    most_regions: int = 5
    """Of one family; further ones hardly add to what is told."""
    most_stretches: int = 4
    """Of one family along one column."""
    small_level: float = 0.05
    """A level joins a region only if chance alone would leave it as empty less often than this."""
    tail: float = 0.05
    """The end of a column joins a stretch unless so many whole families there are rarer."""
    blocks: int = 256
    """Of rows, which are scanned before single rows are: many enough to see a hint of a region
    with the least share, few enough to scan all families at once."""
    cuts: int = 3
    """Columns that are cut in two for each family, to find corners of two columns."""
    least_deviance: float = 20.0
    """G² of a cut worth following."""
    margin: float = 0.15
    """Share of the rows of a side next to the cut that are left out at first, for the error of
    the cut."""
    sample_rows: int = 10_000
    """Rows that cuts and hints are found on; what is told is counted on all of them."""

    def __post_init__(self) -> None:
        for name in ("chance", "share", "level", "vague_level"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                said = f"{name} is a share between 0 and 1, such as 0.02; got {value!r}."
                raise InputError(said)


@dataclass(frozen=True)
class StructuralRules:
    """When a column seems not to exist in some rows, rather than to be lost there."""

    chance: float = 0.2
    """As in `RegionRules`: fewer rows are enough to ask a question than to raise an alarm."""
    share: float = 0.01
    luck: float = 0.001
    """Of many columns and levels some fit by chance; a question too many is not worth it."""
    shown_elsewhere: float = 0.9
    """Of the other rows, at least these show the column."""


@dataclass(frozen=True)
class LossRules:
    """The tests of which columns go with the holes of another."""

    level: float = 0.05
    """After Holm's correction for all pairs of columns."""
    fewest: int = 10
    """Holes, and values, that a test needs for χ² to hold."""
    most_together: int = 5
    """Columns in one regression; of more, few rows show them all."""
    most_rows: int = 10_000
    """Rows of one regression; more say nothing new about what explains holes."""


@dataclass(frozen=True)
class LittleRules:
    """Little's test of loss completely at random."""

    level: float = 0.05
    """Below this p-value, the summary says that values are not lost completely at random."""
    rows_a_column: int = 5
    """Rows for each column, and ten more, without which the moments are too vague to test by."""
    most_work: float = 4e6
    """Patterns times columns cubed in one step of EM; with more, the most frequent patterns are
    tested."""
    steps: int = 1000
    """Of EM."""
    tolerance: float = 1e-6
    """EM has come to rest where no moment moves by more, in standard deviations."""


@dataclass(frozen=True)
class IndependenceRules:
    """The tests of the independences that the graph claims."""

    level: float = 0.01
    """After Holm's correction for every pair of the graph: a true graph is accused in one table of
    a hundred, if regressions are as flexible as the mechanisms."""
    least_correlation: float = 0.1
    """Smaller ones are not told, however certain: they move an answer by little, and imperfect
    regressions leave as much."""
    fewest_rows: int = 100
    """That a test needs, beyond the features that parents are read by."""
    most_rows: int = 5_000
    """That are looked at: enough to be certain of a correlation worth telling."""
    hint: float = 0.5
    """Pairs are tested from this share of the least correlation on, by moments of pairs."""
    least_left: float = 1e-3
    """Of the variance of a feature: less, left by the parents in moments of pairs, is rounding."""
    most_tests: int = 400
    """The strongest pairs by their moments; a table so wrong needs no more to be told."""
    most_confirmed: int = 20
    """Pairs that are asked again with boosted trees, which take about 0.3 s a pair."""
    most_levels: int = 5
    """Of a column that are tested, beside the commonest."""
    knots: int = 4
    """Inside the cubic spline of each parent."""
    rows_a_feature: float = 20.0
    """Products of parents come in as long as there are so many rows for each feature."""
    least_chance: float = 0.02
    """Rows that are shown with a smaller chance would have too much weight, and are left out."""
    most_left_out: float = 0.01
    """Of the rows; where more would be, no test is made."""
    trees: int = 100
    leaf: int = 20
    """Rows: the trees of a regression, and the rows at the end of each branch."""
    folds: int = 3
    """Of the cross-fitting of trees."""


@dataclass(frozen=True)
class SupportRules:
    """After a fit: where answers leave the rows that the mechanisms were learned from."""

    usual: float = 0.01
    """The share of rows outside where nothing is extrapolated, by the definition of outside."""
    worth_saying: float = 0.05
    """A larger share outside is a warning."""
    z: float = 1.64
    """Standard errors over rows by which it must be larger: one side of a 90 % interval. More
    spares hardly a plain table, and misses more of what is extrapolated."""
    draws: int = 4000
    """Rows drawn under the question's intervention: shares are known to within a percent."""
    most_rows: int = 20_000
    """Revealed rows that are searched: beyond, a random part of them."""


@dataclass(frozen=True)
class UnlikelyRules:
    """Which values no law of their column makes likely."""

    level: float = 0.005
    """Of a whole table, by Bonferroni over its columns and the values tried."""
    most_values: int = 3
    """Of a column: a code or two and an error of typing; more are a part of the column."""
    most_in_tail: int = 100
    """Cells that the tail is told by, a fifth of the column at most."""
    least_gamma: float = 0.15
    """A column that ends sharply has no tail at all; a value must still be some three times as far
    out as all others to be told."""
    fewest: int = 50
    """Cells below which nothing is known of a tail."""
    most_rows: int = 3
    """Row labels that are named for one value."""


@dataclass(frozen=True)
class Telling:
    """How much of it is told."""

    most_lines: int = 10
    """Of one kind in the summary; the rest is counted, and stands in the tables."""
    thin_places: int = 3
    """Of one family: where it is seen least."""
    patterns_named: int = 10
    """Patterns that are named for a family."""
    most_curves: int = 6
    """Curves of coverage in one picture."""
    bins: int = 30
    """Of a curve."""
    most_patterns: int = 16
    """Of holes, in the picture."""
    most_families: int = 30
    """In the picture."""


@dataclass(frozen=True)
class CheckSettings:
    """All of them, in groups."""

    regions: RegionRules = RegionRules()
    structural: StructuralRules = StructuralRules()
    loss: LossRules = LossRules()
    little: LittleRules = LittleRules()
    independences: IndependenceRules = IndependenceRules()
    support: SupportRules = SupportRules()
    unlikely: UnlikelyRules = UnlikelyRules()
    telling: Telling = Telling()
    most_levels: int = 50
    """A column of words outside the graph with more levels is a name or a note, and is left
    aside."""

    @property
    def structural_regions(self) -> RegionRules:
        """The rules by which structural holes are searched for."""
        shared = {name: getattr(self.structural, name) for name in ("chance", "share", "luck")}
        return dataclasses.replace(self.regions, vague_level=self.regions.level, **shared)
