r"""Replicates of a fit: what it might have been, had other rows been drawn.

The sampling error of any answer is its spread over replicates of the fit on weighted rows (the
Bayesian bootstrap, Rubin 1981): one Newton step each where it is made of lines and curves
(`solve.sandwich`), networks trained together where it is not (`train`). Neither solves an integral
again: both use a few completions of each row by the fit (`completions`).

Of very many rows, n by chance say how far a step goes as well as all N: their scores times √(N/n)
spread as those of all. Where a parameter hangs on few of them, with ψ = A⁻¹ s in

    m = (Σ ψ²)² / Σ ψ⁴

shares, n rows are too few to tell its standard error, and all are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.errors import solvable
from misscnf.fitting.completions import Completions
from misscnf.fitting.rivals import SolvedRival, Without, solve_rivals
from misscnf.fitting.select.means import Rival
from misscnf.fitting.settings import Replication, Settings
from misscnf.fitting.solve.fisher import likelihood_noise, rows_by_chance
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.sandwich import Information, measure_information, moved
from misscnf.fitting.solve.weak_directions import (
    by_scores_where_untold,
    measure_weak_directions,
    redraw_heavy_rows,
    without_open_directions,
)
from misscnf.fitting.timings import Timings
from misscnf.fitting.train.ensemble import EpochWatcher, train_ensemble
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel, Structure
from misscnf.threads import one_thread

__all__ = ["Replicates", "bootstrap_weights", "replicate_fit"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True, eq=False)
class Replicates:
    """Replicates of a fit, and what is known of the likelihood that they come from."""

    models: list[StructuralModel]
    """B of them, in double precision"""
    settings: Replication = field(default_factory=Replication)
    moves: Tensor | None = None
    """(B, p) how far each is from the fit, where it is made of lines and curves"""
    information: Information | None = None
    """what the rows say of it there"""
    doubt: str | None = None
    """why they say nothing of the sampling error; None where they do"""
    line: Replicates | None = None
    """of the linear model, where the fit has networks: the scores of its rows are known"""
    rivals: tuple[SolvedRival, ...] = ()
    """the fit with another form of one block, where rows hardly tell which is right"""
    without: tuple[Without, ...] = ()
    """the fit without cells that no law of their column makes likely"""

    def tensors(self) -> dict[str, Tensor]:
        """Returns what a file keeps of it beside the models."""
        found = dict[str, Tensor]()
        if self.moves is not None and self.information is not None:
            found = {"moves": self.moves, **self.information.tensors()}
        if self.line is not None:
            states = [model.state_dict() for model in self.line]
            models = {name: torch.stack([state[name] for state in states]) for name in states[0]}
            found |= {f"line.model.{name}": part for name, part in models.items()}
            found |= {f"line.{name}": part for name, part in self.line.tensors().items()}
        for number, rival in enumerate(self.rivals):
            state = rival.model.state_dict()
            found |= {f"rival.{number}.{name}": part for name, part in state.items()}
        for number, one in enumerate(self.without):
            state = one.model.state_dict()
            found |= {f"without.{number}.{name}": part for name, part in state.items()}
        return found

    @staticmethod
    def restored(
        models: list[StructuralModel],
        tensors: Mapping[str, Tensor],
        line: StructuralModel,
        settings: Replication,
        doubt: str | None,
        rivals: Sequence[SolvedRival] = (),
        without: Sequence[Without] = (),
    ) -> Replicates:
        """Returns what was saved, given a linear model of the same graph."""
        below = {name[5:]: part for name, part in tensors.items() if name.startswith("line.")}
        states = {name[6:]: part for name, part in below.items() if name.startswith("model.")}
        by_line = None
        if states:
            count = len(next(iter(states.values())))
            lines = [line.with_state({at: s[b] for at, s in states.items()}) for b in range(count)]
            by_line = Replicates.restored(lines, below, line, settings, doubt)
        about = moves = None
        if "moves" in tensors:
            # Copies lie in memory as they did when made: sums have the same last digit.
            about, moves = Information.restored(tensors, settings), tensors["moves"].clone()

        def filled(model: StructuralModel, start: str) -> StructuralModel:
            own = {n.removeprefix(start): p for n, p in tensors.items() if n.startswith(start)}
            return model.with_state(own)

        others = tuple(
            replace(rival, model=filled(rival.model, f"rival.{number}."))
            for number, rival in enumerate(rivals)
        )
        left = tuple(
            replace(one, model=filled(one.model, f"without.{number}."))
            for number, one in enumerate(without)
        )
        return Replicates(models, settings, moves, about, doubt, by_line, others, left)

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[StructuralModel]:
        return iter(self.models)


def bootstrap_weights(count: int, rows: int, seed: int) -> Tensor:
    """Returns Exp(1) weights of the rows for each replicate, with mean one, (count, rows)."""
    generator = derive_generator(seed, "bootstrap")
    weights = torch.empty(count, rows, dtype=torch.float64).exponential_(generator=generator)
    return weights / weights.mean(1, keepdim=True)


def weights_standing_for(count: int, rows: int, of: int, seed: int) -> Tensor:
    """Returns weights of rows that each stand for so many more, (count, rows).

    The mean of k Exp(1) weights is a Gamma(k) number over k, with variance 1/k: replicates of n
    rows by chance then spread as those of N = k n rows would.
    """
    times = max(of / rows, 1.0)
    shape = torch.full((count, rows), times, dtype=torch.float64)
    generator = derive_generator(seed, "bootstrap of all rows")
    weights = torch._standard_gamma(shape, generator=generator)
    return weights / weights.mean(1, keepdim=True)


@solvable()
@one_thread()
def replicate_fit(
    model: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    *,
    seed: int = 0,
    count: int | None = None,
    watch: EpochWatcher | None = None,
    rivals: Mapping[int, Rival] | None = None,
    stands_for: int | None = None,
    whole: bool = False,
) -> Replicates:
    """Returns models that differ from a fit by its sampling error.

    Arguments:
        model: The fit.
        structure: Its graph, domains and ties.
        rows: The rows of the fit.
        settings: How the fit was trained.
        seed: Where randomness starts.
        count: How many; None for as many as the settings say.
        watch: Called after each epoch, where networks are trained.
        rivals: Forms that blocks might have had, by block.
        stands_for: How many rows the fit is of, where `rows` are some of them by chance.
        whole: Whether each row has a weight of its own, however many they are: an average over the
            rows asks for it.
    """
    timings = Timings()
    if stands_for is not None:
        rows = rows_by_chance(rows, settings.streaming.information_rows)
    with timings.stage("other forms"):
        solved = solve_rivals(model, structure, rows, settings, seed, rivals or {})
    fit = _Fit(model, structure, rows, settings, seed, stands_for, timings)
    found = _of_lines(fit, count, whole=whole) if fit.solved else _of_networks(fit, count, watch)
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in timings.items())
    logger.debug("replicates of the fit: %s.", stages)
    return replace(found, rivals=solved)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit that is replicated, and the rows that it is of."""

    model: StructuralModel
    structure: Structure
    rows: RowSource
    settings: Settings
    seed: int
    stands_for: int | None
    """how many rows the fit is of, where `rows` are some of them"""
    timings: Timings

    @property
    def solved(self) -> bool:
        """Whether nothing of it was trained."""
        return all(self.model.block(block).solvable for block in range(len(self.model.blocks)))

    def line(self) -> _Fit:
        """Returns the linear model of the same rows."""
        with self.timings.stage("linear model"):
            return replace(self, model=fit_linear(self.structure, self.rows, self.settings).model)


def _of_lines(fit: _Fit, count: int | None, *, whole: bool) -> Replicates:
    """Returns replicates of lines and curves: one step from the fit each."""
    rules, rows = fit.settings.replicates, len(fit.rows)
    count = count or rules.solved
    if fit.stands_for is None and not whole and rows > rules.most_rows:
        by_some = _by_some(fit, count)
        if by_some is not None:
            return by_some
    return _one_step(fit, bootstrap_weights(count, rows, fit.seed))


def _by_some(fit: _Fit, count: int) -> Replicates | None:
    """Returns replicates by rows that stand for all; None where these are too few to tell."""
    some = rows_by_chance(fit.rows, fit.settings.streaming.information_rows)
    weights = bootstrap_weights(count, len(some), fit.seed)
    found = _one_step(replace(fit, rows=some, stands_for=len(fit.rows)), weights)
    about = found.information
    if found.doubt is None and about is not None:
        shares = about.fewest_shares()
        if shares >= fit.settings.replicates.fewest_shares:
            return found
        logger.debug("%d rows are too few for an interval: %.0f shares.", len(some), shares)
    return None


def _of_networks(fit: _Fit, count: int | None, watch: EpochWatcher | None) -> Replicates:
    """Returns replicates of networks: all are trained together, on the same completed rows."""
    rules, settings, seed = fit.settings.replicates, fit.settings, fit.seed
    count = count or rules.networks
    models, weights, line = _start_networks(fit, count)
    generator, effort = derive_generator(seed, "particles"), settings.integration.completions
    about = (rules.completions_of_networks, generator, effort)
    with fit.timings.stage("completing rows"):
        completions = Completions.draw(fit.model, fit.rows, *about).to(torch.float32)
    order = torch.randperm(len(completions), generator=derive_generator(seed, "held out"))
    held_out = int(rules.held_out * len(order))
    split = order[held_out:], order[:held_out]
    training = replace(settings.training, steps_an_epoch=rules.steps_an_epoch)
    settings = replace(settings, training=training)
    with fit.timings.stage("training"):
        train_ensemble(models, completions, split, weights.float(), settings, seed, watch)
    models = [found.double().eval().requires_grad_(requires_grad=False) for found in models]
    doubt = None if line is None else line.doubt
    return Replicates(models, rules, doubt=doubt, line=line)


def _start_networks(
    fit: _Fit, count: int
) -> tuple[list[StructuralModel], Tensor, Replicates | None]:
    """Returns networks as they start, their weights, and the lines that they start from."""
    lines, rows, seed = fit.settings.linear_start, len(fit.rows), fit.seed
    # Lines are cheap and tell the spread of scores: there are as many as for a fit of lines.
    drawn = max(count, lines * fit.settings.replicates.solved)
    weights = bootstrap_weights(drawn, rows, seed)
    starts, line = list[StructuralModel | None]([None] * count), None
    if lines:
        line = _one_step(fit.line(), weights)
        starts, weights = list(line.models[:count]), weights[:count]
    if fit.stands_for is not None:
        weights = weights_standing_for(count, rows, fit.stands_for, seed)
    models = []
    for replicate, start in enumerate(starts):
        found = _afresh(fit.model, start)
        found.initialise(derive_generator(seed, "replicate", replicate))
        models.append(found.float())
    return models, weights, line


def _afresh(model: StructuralModel, line: StructuralModel | None) -> StructuralModel:
    """Returns a model with mechanisms of the same shapes, as they start.

    Curves rest on what the fit chose for them, and start where it ended: there is but one maximum.
    """
    mechanisms: list[Mechanism] = []
    for block in range(len(model.blocks)):
        fitted = model.block(block)
        mechanisms.append(type(fitted)(**fitted.spec()))
        if fitted.curve_size is not None:
            mechanisms[-1].start_from(fitted)
        elif line is not None:
            mechanisms[-1].start_from(line.block(block))
    return model.like(mechanisms)


def _one_step(fit: _Fit, weights: Tensor) -> Replicates:
    """Returns the lines and curves of each set of weights, (B, N)."""
    model, rows, settings, timings = fit.model, fit.rows, fit.settings, fit.timings
    generator = derive_generator(fit.seed, "particles of the line")
    effort, rules = settings.integration, settings.replicates
    times = rules.completions_of_solved
    with timings.stage("completing rows"):
        completions = Completions.draw(model, rows, times, generator, effort.completions)
    with timings.stage("information"):
        found = measure_information(model, completions, rules)
        about = (model, rows, completions, generator, effort.completions)
        found = redraw_heavy_rows(found, *about)
    with timings.stage("weak directions"):
        if likelihood_noise(model, rows, settings) <= settings.solving.most_noise_of_line:
            # differences of drawn integrals would be differences of their noise
            found = measure_weak_directions(found, model, rows, effort.linear)
        elif not model.graph.latent:  # hidden causes leave directions open by their nature
            found = by_scores_where_untold(found, *about)
        if model.graph.latent:
            found = without_open_directions(found)
    if fit.stands_for is not None:
        found = found.standing_for(fit.stands_for)
    moves = found.replicate_moves(weights, fit.seed)
    models = [moved(model, move) for move in moves]
    return Replicates(models, rules, moves, found, _doubt(model, rows, found))


def _doubt(model: StructuralModel, rows: RowSource, found: Information) -> str | None:
    """Says why the curvature at a fit is no measure of what rows tell, if it is none."""
    for block, nodes in enumerate(model.blocks):
        law = model.block(block)
        lowest, parameters = law.lower_bounds(), dict(law.named_parameters())
        if all(bool((parameters[at] > low + 0.1).all()) for at, low in lowest.items()):
            continue
        families = [list(model.graph.families[node]) for node in nodes]
        whole = sum(
            int(batch.observed[:, family].all(1).sum())
            for batch in rows.batches()
            for family in families
        )
        if whole < found.settings.fewest_whole:
            name = model.graph.nodes[nodes[0]]
            return (
                f"the fit leaves {name!r} no noise, and only {whole} rows show it with all of its "
                f"causes: the rows do not tell the model's parts apart."
            )
    if not bool(torch.linalg.eigvalsh(found.matrix + found.prior.diag()).min() > 0):
        return "the likelihood has no maximum at the fit: the rows leave a direction open."
    if not found.told:
        return "the rows leave a direction open, as far as drawn integrals tell."
    if found.left > found.settings.most_left * len(found.matrix):
        return "the fit is not at the maximum of the likelihood."
    return None
