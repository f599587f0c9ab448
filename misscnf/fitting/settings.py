r"""What a fit is told: every number that shapes an answer, in groups, with its reason beside it.

A saved model carries its settings, so that it says fully how it was fitted. They are changed by
name, such as `MissCNF(graph, settings={"selection.z": 2.0})` (`misscnf.options`). Presets are
data:

`auto` starts from the linear model, and gives a curve, a network or a richer noise to the nodes
for which rows that were left out ask. `linear` is full-information maximum likelihood. `paper`
follows the paper's appendix "Causal normalizing flows": affine maps from two hidden layers of 64
ReLU units, AdamW at 1e-3, batches of 4096, 1000 epochs, a plateau schedule, 512 independent draws
averaged jointly, the gradient taken through the draws, the weights of the last epoch. One thing
differs: each node has a network of its own of these sizes, where the public library deals 64 units
out among all nodes of one masked network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from misscnf import options
from misscnf.data.kinds import KindRules
from misscnf.data.rows import RowSource
from misscnf.errors import InputError
from misscnf.inference.chains import ChainRules
from misscnf.inference.integrals import ALGORITHM_1, Efforts
from misscnf.mechanisms import Shape

__all__ = ["Settings", "Solving", "Selection", "Training", "Curves", "Products", "Replication"]
__all__ += ["Streaming", "PRESETS", "preset_settings"]


@dataclass(frozen=True)
class Solving:
    """Maxima that are solved for: linear models, and lines and curves beside networks."""

    unseen_slope: float = 0.3
    """Where the rows give no slope to start from; zero could be a saddle."""
    starts: int = 6
    """Starts of a fit with hidden causes: it may have lesser maxima, and one start in three finds
    the best of a mixture."""
    start_steps: int = 15
    """Of the search from each start of a model with classes, before the best goes on: by then
    which of them is best no longer changes."""
    start_spread: float = 0.5
    """By how much these differ, in standard deviations of a column a unit of a hidden cause."""
    same_likelihood: float = 0.01
    """Nats in the whole table by which two starts reach the same maximum."""
    whitening_completions: int = 16
    """Completions of a row behind the coordinates in which the generalised linear fit searches."""
    whitening_rows: int = 20_000
    """Rows behind these coordinates; longer tables are stood for by some of theirs."""
    least_whole: float = 0.5
    """Of the rows that show a node, those that show its family: where they are fewer, a
    generalised linear model starts from rows that a joint normal law has completed."""
    most_noise_of_line: float = 0.03
    """Nats by which the log-likelihood of the table may differ with other random numbers, for a
    generalised linear fit to search it: sums and quadrature are below, draws far above. A
    sampling error is worth half a nat for every parameter."""
    most_noise_of_hidden: float = 1.0
    """The same where there are hidden causes: up to here the search takes as many points for every
    integral, at every step. Rounds of completions would come to rest far from the maximum."""
    noise_rows: int = 50
    """Rows of which that is measured, among those that may have to be drawn: it only has to tell
    hundredths of a nat from nats."""
    least_information: float = 1e-3
    """Of the largest eigenvalue of the information: a flatter direction is not stretched more."""
    least_exact: float = 0.3
    """Of the rows, those whose integrals are exact: with fewer, a fit beside hidden causes does
    not climb on them first."""
    climb_rows: int = 4000
    """Rows that lead the way to a maximum beside hidden causes, before all rows do: a hundred
    steps on these, and a dozen on all."""
    completions: int = 32
    """Completions of a row in a round of Monte-Carlo maximum likelihood."""
    fine_completions: int = 96
    """The same near the maximum, in all last rounds together: their noise is a hundredth of the
    error of the estimate."""
    fine_rows: int = 20_000
    """Rows that the effort of that round is meant for. The bias of few draws is alike in all rows,
    while the sampling error falls with the square root of their number: for a quarter of the rows
    half the draws are as good."""
    most_cells: int = 5_000_000
    """Completed cells in a round, which bounds its memory; two completions of a row at least, if
    it hides anything."""
    most_rounds: int = 10
    """Rounds of completing and maximising; what has not come to rest by then is not identified."""
    shared_rounds: int = 3
    """At most so many last rounds, where one cannot hold all fine completions; they share the
    noise."""
    most_noise: float = 8.0
    """A round that gains less than so many times the expected noise may have gained nothing."""
    loss_slopes: tuple[float, ...] = (0.0, 1.5, -1.5)
    """Where the search for the slope of a loss on the value it hides starts, in log-odds a
    standard deviation: its likelihood may have a maximum on either side of zero."""
    loss_rows: int = 3000
    """Rows that try these starts; the best goes on with all rows."""
    loss_completions: int = 8
    """Completions of a row far from the maximum, in place of `completions`, where a loss depends
    on the value it hides: every hole is integrated over then, and early rounds need few."""
    loss_fine_completions: int = 32
    """The same in place of `fine_completions`: the noise is a thirtieth of the error of the
    estimate then, in variance, and the round takes a third of the time."""
    evidence_rows: int = 6000
    """Rows that are asked who else drives a loss, at first: of a driver that is worth a
    thousandth of a nat a row they know little."""
    evidence_most: int = 50_000
    """Rows that are asked where these leave it open whether all rows would name a driver."""
    evidence_price: float = 2.0
    """Times Schwarz's price of a slope that a further driver must gain: a loss that was told right
    loses what identifies it where a driver joins by chance, at this price in 1 of 30,000."""
    evidence_z: float = 4.0
    """Standard errors of the slope of a loss on its own value, above which nobody doubts it: the
    Bayes factor against none is a hundred there, as a rule."""
    evidence_noise: float = 0.02
    """Of what complete rows would say of such a slope: so much is no more than the noise of
    completions, and does not count."""
    chains: ChainRules = field(default_factory=ChainRules)
    """Chains of completions, where rows hide much together."""
    judged_rows: int = 100
    """Rows whose log-density `history_` averages, where rows hide much together: each costs an
    integral, and nothing in the fit needs it."""
    burn_in: int = 6
    """First rounds of EM on chains that only move the chains, which come from the linear model."""
    settling_rounds: int = 8
    """Rounds in which estimates come to rest, at most. They start at curves that follow the rows
    which show a family whole, one or two standard errors away, and a round leaves a third to two
    thirds."""
    at_rest: float = 0.9
    """Of what the round before gained: one that gains more has come to rest. Beside networks that
    were trained anew that is soon, since most curves are where they were."""
    averaged_rounds: int = 16
    """Further rounds, over which estimates are averaged: with four chains, the noise that is left
    adds about a tenth to the sampling variance."""
    overrelaxation: float = 1.5
    """A round goes so many times as far as EM; below 2, to the same limit."""
    newton_steps: int = 10
    """Steps of the simplified Newton iteration."""
    newton_tolerance: float = 0.01
    """Nats in the whole table: a Newton step that gains less is the last."""

    def most_completions(self, rows: RowSource) -> int:
        """Returns how many completions of a table `most_cells` allows, two at least."""
        return max(2, self.most_cells // max(1, len(rows) * rows.columns))

    def completions_of(self, rows: RowSource) -> int:
        """Returns how many completions of a table a round has."""
        return min(self.completions, self.most_completions(rows))


@dataclass(frozen=True)
class Selection:
    """Which form of a mechanism each node earns on rows that were left out."""

    compare: bool = True
    """Whether nodes stay linear unless rows that were left out favour more."""
    curves: bool = True
    """Whether a mean may be a curve, between line and network; never where the shape asks for
    another kind of mechanism than "gaussian"."""
    noise: bool = True
    """Whether nodes whose noise is odd may earn a network of the scale and a spline."""
    z: float = 1.5
    """Standard errors of the elpd difference by which a mean that both a network and a curve ask
    for must beat the line."""
    z_alone: float = 2.5
    """The same for one that only one of the two asks for: two that try have twice the luck."""
    z_noise: float = 2.5
    """The same for the noise: of three richer noises one wins by luck more often, and trains
    everything once more."""
    noise_p_value: float = 1e-3
    """How unlikely the noise of a node must be to ask for a richer one; a false alarm costs time
    only."""
    curve_p_value: float = 0.3
    """How unlikely rows must be under the line of a node for a curve to be tried, or a network
    where few rows show the family; a false alarm costs time, a bend that is missed an answer."""
    always_asked: int = 6
    """So many blocks, those of the smallest p-values, are asked whatever these are: where most of
    a family is hidden the test has little power, and in a small graph asking costs little."""
    network_p_value: float = 0.05
    """The same for a network of a family that rows show, also against a curve that has won: it
    spends twenty degrees of freedom or more, so what it could gain shows more clearly."""
    frequencies: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Of the waves by which a line is tested, in a standardised feature."""
    few_parents: int = 6
    """Features up to which all frequencies and all products are tested; of more, the first."""
    joint_waves: int = 8
    """Waves of all features at once, beside those of each."""
    farthest: float = 3.0
    """Standard deviations of a parent: farther out, it moves what is tested no more."""
    rough_bands: tuple[tuple[float, ...], ...] = (
        (5.0, 6.0, 7.0, 8.0),
        (9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0),
        (18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0),
    )
    """Waves by which what a fit leaves is tested, in a standardised parent: faster than any form
    follows. Neighbours of one another are alike, so that few do for all between."""
    rows_a_wave: int = 10
    """Rows that say something of a band, for each of its waves and each score of the node; with
    fewer it is not tested."""
    rough_rows: int = 5000
    """Rows of that test: a wave that these do not show moves no answer by much."""
    rough_p_value: float = 0.005
    """For all families together: how unlikely what a fit leaves must be to be told. Discrete nodes
    of 300 rows are accused up to three times as often; waves that matter are far below."""
    rows_a_feature: int = 100
    """Rows for each feature of a wide family (`curves.most_features`): with fewer, a network has
    more directions to learn than rows to learn them from, and neither networks nor richer noise
    are tried."""
    fewest_held_out: int = 20
    """With fewer held-out rows nobody can tell when a network has been trained enough: lines and
    curves are all there is."""
    fewest_complete: int = 30
    """Rows that show a family whole, below which a curve has too little to go by."""
    fewest_of_rival: int = 10
    """Rows that show a family whole, below which nobody knows what a curve would be. With so many
    and fewer than `fewest_complete`, a curve is not taken, but intervals know of it."""
    least_departure: float = 0.4
    """Squares by which curve and line differ over all rows, in those of the noise, times the
    weight of the form that was not taken: with less, the variance of no answer is larger by more
    than this share of it, however the form is chosen, and intervals take the choice as made."""
    many_complete: int = 1000
    """Rows that show a family whole, from which on a curve and a network see the same things."""
    least_share: float = 0.25
    """Of the rows that show a node, those that show its family: where they are fewer, most of what
    the table knows of the node lies in the others."""
    hidden_rows: int = 8000
    """Rows by which curves beside hidden causes are tried, and at most so many of those that were
    left out: each trial is a fit."""
    completions: int = 8
    """Completions of a row."""
    most_rows: int = 50_000
    """Longer tables are judged by some of their rows."""
    most_cells: int = 20_000_000
    """Of all completions, likewise."""
    folds: int = 5
    """Parts of the rows that are left out in turn."""
    folds_of_many: int = 3
    """The same where rows are many: three say as much then, and cost less."""
    few_rows: int = 10_000
    """Up to so many rows, `folds`."""
    steps: int = 320
    """Steps of training in a comparison: enough to tell a nonlinear mean from a line."""
    noise_steps: int = 120
    """Steps in a comparison of noise: the law of one number is learned sooner."""
    comparison_batch: int = 1024
    """Rows in a step of a comparison."""
    hidden: tuple[int, ...] = (32, 32, 32)
    """Hidden widths of the networks that are compared; those that are kept may be larger."""
    scale_hidden: tuple[int, ...] = (32, 32)
    """Hidden widths of networks of the scale."""
    whole_members: bool = False
    """Whether members of a block of columns may be all that other nodes may be. If not, those that
    every row shows with what they depend on stay lines, since no average over rows leans on their
    law, only samples and densities of the block itself; the others, whose law completes rows, may
    become curves."""
    arrow_penalty: float = 1.0
    """What an arrow inside a block of columns has to gain, in units of Schwarz's criterion; zero
    keeps every arrow."""


@dataclass(frozen=True)
class Training:
    """How networks are trained."""

    epochs: int = 40
    """Passes over the training rows that follow the likelihood of all that is seen."""
    complete_family_share: float = 0.5
    """So many times as many passes before them, which learn from the families that rows show whole
    and cost no integral."""
    fewest_complete: int = 1000
    """A family that fewer rows show whole waits for the likelihood: a network follows a few
    hundred rows wherever they lead, and the likelihood does not bring it back."""
    noise_share: float = 0.5
    """Of the epochs, for the training with richer noise, which starts close to its end."""
    scale_share: float = 0.25
    """The same once the means beside a network of the scale have moved."""
    batch: int = 512
    """Rows in a step; fewer where the table is short, so that an epoch has several steps."""
    least_batch: int = 64
    """No fewer, but for shorter tables."""
    steps_an_epoch: int = 16
    """At least so many steps in an epoch, as far as `least_batch` allows."""
    learning_rate: float = 1e-2
    """The rate, or the peak of the one-cycle schedule."""
    schedule: Literal["one-cycle", "plateau"] = "one-cycle"
    """A curve known in advance, or a rate that falls when held-out rows gain no more."""
    warm_up: float = 0.15
    """Of all steps, in which the one-cycle schedule rises."""
    averaging: float | None = 0.99
    """Exponential averaging of the weights, per step; None for none."""
    keep_best: bool = True
    """Whether the best epoch by held-out likelihood may be kept, instead of the last."""
    z_best: float = 3.0
    """Standard errors by which it must beat the last: the best of sixty epochs lies up to two
    above it by luck alone."""
    patience: int | None = None
    """Epochs without a better held-out likelihood before training stops; None never stops."""
    gradient: Literal["fisher", "pathwise"] = "fisher"
    """Fisher's identity, or through the draws as in the paper."""
    completions: int = 2
    """Posterior draws of a row that are differentiated by the Fisher gradient."""
    most_together: int = 8
    """Where a row hides more nodes together, every step would cost a search for modes in many
    dimensions: networks are trained on completions there, which are drawn once a round."""
    rounds: int = 1
    """Rounds of completing the rows and training networks on these completions; lines and curves
    are maximised before each, and after the last."""

    def batch_for(self, rows: int) -> int:
        """Returns the rows of a step for a table of so many rows."""
        few = max(self.least_batch, rows // self.steps_an_epoch)
        return max(1, min(self.batch, few, rows))


@dataclass(frozen=True)
class Curves:
    """Curves: Gaussian processes whose prior the evidence chooses, seen through few functions.

    Lengths are in standard deviations of a feature.
    """

    amplitude: float = 0.4
    """Where the search for the amplitude starts, and its prior is centred."""
    length_scale: float = 3.0
    """The same for length scales."""
    curvature: float = 0.4
    """The same for the weights of products."""
    noise: float = 0.4
    """The same for the noise."""
    prior_spread: float = 1.5
    """Deviation of the logarithms of all four around these, before rows are seen."""
    line_spread: float = 3.0
    """Deviation of the weights of the line, while the evidence is compared."""
    wide: float = 2.0
    """A length scale that needs no further evidence."""
    worth: float = 5.0
    """Nats that narrower ones have to gain: the evidence has a second, wiggly maximum now and
    then, hardly higher than the smooth one. And those that products have to gain by going on as
    products beyond the edges, in rows that are left out: the few rows out there say it loudly."""
    narrowest: float = 0.5
    """What needs a shorter length scale is a network's business."""
    most_centres: int = 128
    """What needs more centres likewise; two wavy parents need seventy to ninety."""
    most_products: int = 6
    """Features; of more, products are too many."""
    evidence_rows: int = 3000
    """Rows that choose the prior; the curve itself is fitted to all."""
    evidence_centres: int = 128
    """Centres that stand for these rows, at most."""
    centres_reach: float = 0.7
    """Times the length scales that few rows suggest: so short ones may be, before centres that
    stand for the rows are chosen anew."""
    rough_rows: int = 500
    """Of these, the rows that find where the search for the prior starts ..."""
    rough_centres: int = 48
    """... and their centres."""
    hopeless: float = 15.0
    """Nats below the best at such a start: three times what wide length scales may be behind, and
    all rows have brought a search ten nats further at the most."""
    evidence_tolerance: float = 1e-5
    """Nats: a step of the search that gains less is the last, as a rule. The evidence is flat
    along a ridge of amplitude and length scale; a search that stops sooner ends where it began."""
    evidence_steps: int = 60
    """Steps of the search for the prior."""
    least_information: float = 0.05
    """Basis functions of which all rows together know less, against 1 of the prior, are left
    out."""
    beyond: int = 10
    """Rows on either side that do not say how a curve turns, only where it goes; half a percent of
    fewer than 2,000."""
    lead: float = 0.25
    """Length scales by which a curve still turns when rows come to an end."""
    most_features: int = 12
    """Features of a smooth curve: a family with more of them is wide, and its curve is a sum of
    interactions of few of them."""
    most_terms: int = 60
    """Terms of such a curve, features themselves among them."""
    search_rows: int = 10_000
    """Rows among which its terms are searched; all of them weigh these."""
    knots: int = 9
    """Quantiles of a feature at which a term may bend."""
    term_rows: int = 20
    """Rows in which a term is not zero, at least."""
    least_new: float = 1e-3
    """Of the squares of a term, what the terms before it do not say; with less it is one of
    them."""


@dataclass(frozen=True)
class Products:
    """Products of two parents beside a line, by which groups may differ."""

    keep: bool = True
    """Whether lines have them; a line without gives every group the same effect."""
    few_levels: int = 6
    """Levels of a parent whose products with all others are kept."""
    most: int = 40
    """Products of a family: of more, those that the rows say most of."""
    spread: float = 0.2
    """Deviation of a product's weight before rows are seen, in deviations of the noise: it may say
    4 % of what is left. In trials of 1,000 rows it shrinks by a fortieth, and of products that are
    not there 4 of 100 look as if they were."""
    log_spread: float = 0.5
    """Deviation of the logarithm of that, which rows move: with more of it, single products are
    shrunk as luck has it."""
    least_new: float = 1e-3
    """Of the size of a product, what the line does not say; with less it is the line."""
    farthest: float = 4.0
    """How far a product may be where no row is, in units of what the only row there would have."""


@dataclass(frozen=True)
class Replication:
    """Replicates of a fit, from which intervals come."""

    networks: int = 16
    """How many where there are networks; the interval's t has one degree of freedom fewer."""
    solved: int = 100
    """How many where there are lines and curves only."""
    completions_of_networks: int = 16
    """Completions of a row behind replicates of networks."""
    completions_of_solved: int = 32
    """Completions of a row behind replicates of lines and curves."""
    held_out: float = 0.1
    """The share of rows that choose the epoch of a replicate."""
    units: int = 5000
    """Units by which a replicate answers: they are those of the fit, so that few show the
    spread."""
    row_completions: int = 8
    """Completions of each row by which a replicate answers, where rows are the units, or a row's
    counterfactual is asked for with an interval."""
    fewest: int = 5
    """Replicates that an interval needs."""
    most_groups: int = 12
    """Levels of a column that make groups; of more, the numbers are split at their median."""
    fewest_in_group: int = 1000
    """Units of a group below which its answer has a note; of rows a tenth, since intervals know
    how few they are."""
    least_tail_index: float = 1.5
    """Noise with a lower one has no mean (below 1), or one that a table of any size hardly tells:
    a mean of n units then errs like n^(1/α − 1)."""
    steps_an_epoch: int = 8
    """Half as many as in the fit: a stacked step costs much, however few its rows."""
    open_share: float = 0.002
    """Of what complete rows would say of a direction: where rows beside hidden causes say less,
    they say nothing of it, and replicates do not move along it."""
    prior_spread: float = 10.0
    """Deviation of a normal prior around the fit, so wide that it only bounds what the table says
    nothing of."""
    open_spread: float = 1.0
    """Deviation of replicates in directions that the table says nothing of, such as a logit that
    ran off since no row has the event: enough to see what depends on them."""
    least_information: float = 1e-3
    """Information a row on a parameter at an end of its range, below which it stays there."""
    clearly: float = 3.0
    """Standard errors of a correlation that is none of chance: of an answer with a move of the fit
    that a prior alone holds."""
    few_shares: float = 30.0
    """Equal shares of the sampling variance of an answer; with fewer, rows that a line passes
    through leave residuals too small to tell, and the information has its say."""
    most_rows: int = 200_000
    """Rows up to which each is asked for its score; of more, `streaming.information_rows` by
    chance stand for all, where networks have no part and `fewest_shares` says that they are
    enough."""
    fewest_shares: float = 300.0
    """Equal shares of the sampling variance of every parameter in those rows: standard errors are
    known to 1/(2 √300) = 3 % then. With fewer, a rare level say, all rows are asked."""
    next_to_none: float = 0.5
    """Events that a risk is worth, below which it has a note: half of one is none, rounded."""
    least_move: float = 0.1
    """Standard errors by which an answer moves without a value that no law makes likely, for it to
    be told: one row of 1,000 moves it by 0.03 as a rule."""
    few_rows: int = 5
    """An answer has a note where so many rows, or fewer, make up half of its sampling variance
    ..."""
    few_share: float = 0.02
    """... and are no more than this share of all."""
    most_left: float = 0.5
    """Nats for each parameter that a Newton step could still gain: with more, the fit is not at
    its maximum, and its curvature there says nothing."""
    fewest_whole: int = 30
    """Rows that show a family whole, without which noise that vanishes is no finding."""
    kept_scores: int = 2**21
    """Numbers of scores that a saved model keeps, 16 MB: those of the rows that weigh most."""
    slope_spread: float = 1.5
    """Deviation of the slope of a loss before rows are seen, in log-odds a standard deviation of
    what drives it: what rows know of a slope is measured against it."""
    least_known: float = 0.8
    """Of what is known of such a slope, what the rows have to say: with less, what leans on it has
    a note. The standard error is half of `slope_spread` there."""
    weak_share: float = 0.25
    """Of what completed rows would say of a direction, what the rows say: below it completions
    are too coarse, since they are off by some percent of the former."""
    most_weak: int = 16
    """Directions that are measured again, the weakest; each costs two passes over the rows."""
    weak_step: float = 0.5
    """How far they are followed on either side, in standard errors that completed rows would
    leave."""
    heavy_share: float = 0.1
    """Of what completed rows would say, what one row takes back: with more, its completions are
    drawn finely. All lighter ones together err by 11 % of it at worst, by some tenths of a percent
    as a rule."""
    most_heavy: int = 16
    """Rows that are drawn finely, the heaviest."""
    completions_of_heavy: int = 1024
    """Completions of such a row in a round."""
    rounds_of_heavy: int = 64
    """Rounds that these rows share: one by itself errs by less than 1 %."""
    least_told: float = 3.0
    """Standard errors that drawn curvature is away from zero: with fewer, scores stand for it."""
    least_shown: float = 6.0
    """Standard errors that the sum of squared scores is above what chance makes of it: with fewer,
    a direction is open. If one row makes the chance, a flat one is more in 2 of 1,000 cases."""


@dataclass(frozen=True)
class Streaming:
    """Tables that are read from disk, since they take more memory than they may."""

    bytes_a_cell: int = 200
    """What a cell of a table takes at the peak of a fit in memory, roughly."""
    sample_rows: int = 200_000
    """Rows by chance on which forms are chosen and fitted before all rows move them. A table of
    any size is judged by 50,000 (`selection.most_rows`); with four times as many, estimates start
    within a 450th of a standard deviation, which a pass or two over all rows can mend."""
    columns_at_once: int = 2
    """Columns whose kinds are learned side by side, each with some 60 bytes a row."""
    information_rows: int = 20_000
    """Of the sample, those that say how far a step goes, and how large standard errors are: these
    are known to half a percent then."""
    passes: int = 12
    """Over all rows, at most; each leaves a few percent of the way, where integrals are exact."""
    tolerance: float = 1e-4
    """Nats in the whole table: a pass whose step gains less is the last. That step is about a
    hundredth of a standard error long, and what it leaves is a few percent of it."""
    network_steps: int = 5000
    """Steps of training in each lane, about: a table of any size takes no fewer than one pass, and
    no more than one in memory would. In trials of 40,000 rows 600 steps were as good as a training
    in memory, and twice as many better. The sample, which goes before, takes no more of them."""
    lanes: int = 2
    """Walks that start at one place in every round, and whose ends are averaged; so many workers
    can share them. With four, each takes half as many steps, and comes less far in as many passes.
    """
    shard_rows: int = 16_384
    """Rows of a lane in a round, 32 steps; of ten columns they take 3 MB."""
    group_rows: int = 512
    """Neighbouring rows that are read together; a shard has groups from all over the table."""

    def network_passes(self, rows: int, training: Training) -> int:
        """Returns by how many passes over so many rows networks are trained."""
        seen = self.network_steps * self.lanes * training.batch_for(rows)
        most = round((1.0 + training.complete_family_share) * training.epochs)
        return max(1, min(most, round(seen / rows)))


@dataclass(frozen=True)
class Settings:
    """How columns are read, and a model is shaped, chosen, solved, trained and replicated.

    Example:
        >>> from dataclasses import replace
        >>> from misscnf import PRESETS, MissCNF
        >>> own = replace(PRESETS["linear"], replicates=Replication(networks=50))
        >>> MissCNF("dose -> days", own).preset.replicates.networks
        50
        >>> MissCNF("dose -> days", settings={"selection.z": 2.0}).settings  # by its name
        {'selection.z': 2.0}
    """

    preset: str = "auto"
    """The name of the preset that these settings come from."""
    kinds: KindRules = field(default_factory=KindRules)
    """How the kinds of columns are inferred."""
    shape: Shape = field(default_factory=Shape)
    """The mechanism that a node with a network gets."""
    train: bool = True
    """Whether anything beyond the linear model is asked for."""
    linear_start: bool = True
    """Whether to start from the maximum-likelihood linear model."""
    integration: Efforts = field(default_factory=Efforts)
    """How hard what is hidden is integrated, in training and after it."""
    solving: Solving = field(default_factory=Solving)
    """How maxima are solved for."""
    selection: Selection = field(default_factory=Selection)
    """How richer forms earn their place."""
    training: Training = field(default_factory=Training)
    """How networks are trained."""
    curves: Curves = field(default_factory=Curves)
    """How rich a curve may be."""
    products: Products = field(default_factory=Products)
    """Which products a line keeps, and how they are shrunk."""
    replicates: Replication = field(default_factory=Replication)
    """From how many replicates intervals come, and from which completions."""
    streaming: Streaming = field(default_factory=Streaming)
    """How a table is read that takes more memory than it may."""

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-friendly form."""
        return options.to_dict(self)

    @staticmethod
    def from_dict(data: Mapping[str, object]) -> Settings:
        """Reads what `to_dict` wrote."""
        return options.from_dict(Settings, data)


PRESETS: dict[str, Settings] = {
    "auto": Settings(),
    "linear": Settings(
        preset="linear", shape=Shape(hidden=()), train=False, selection=Selection(compare=False)
    ),
    "paper": Settings(
        preset="paper",
        shape=Shape(kind="affine", hidden=(64, 64), activation="relu"),
        linear_start=False,
        selection=Selection(compare=False),
        training=Training(
            epochs=1000,
            complete_family_share=0.0,
            batch=4096,
            steps_an_epoch=1,
            learning_rate=1e-3,
            schedule="plateau",
            averaging=None,
            keep_best=False,
            gradient="pathwise",
        ),
        integration=Efforts(training=ALGORITHM_1, validation=ALGORITHM_1, joint=True),
    ),
}
"""The presets by name."""


def preset_settings(
    preset: str | Settings, changes: Mapping[str, object] | None = None
) -> Settings:
    """Returns the settings of a preset, with some of them changed by name.

    Arguments:
        preset: Its name, or settings.
        changes: Such as `{"selection.z": 2.0, "epochs": 20}`.
    """
    if isinstance(preset, str):
        if preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise InputError(f"there is no preset {preset!r}; choose one of {known}.")
        preset = PRESETS[preset]
    return options.change(replace(preset), changes or {})
