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
    about = (structure, rows, settings, seed, count, watch, timings, stands_for)
    found = replace(_replicate(model, *about, whole=whole), rivals=solved)
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in timings.items())
    logger.debug("replicates of the fit: %s.", stages)
    return found


def _replicate(
    model: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    seed: int,
    count: int | None,
    watch: EpochWatcher | None,
    timings: Timings,
    stands_for: int | None,
    *,
    whole: bool,
) -> Replicates:
    replication = settings.replicates
    solved = _is_solved(model)
    count = count or (replication.solved if solved else replication.networks)
    if solved and stands_for is None and not whole and len(rows) > replication.most_rows:
        by_some = _by_some(model, rows, count, settings, seed, timings)
        if by_some is not None:
            return by_some
    lines = settings.linear_start and not solved
    weights = bootstrap_weights(max(count, lines * replication.solved), len(rows), seed)
    if solved:
        return _one_step(model, rows, weights, settings, seed, timings, stands_for)
    starts, line = list[StructuralModel | None]([None] * count), None
    if lines:
        with timings.stage("linear model"):
            found_line = fit_linear(structure, rows, settings).model
        line = _one_step(found_line, rows, weights, settings, seed, timings, stands_for)
        starts, weights = list(line.models[:count]), weights[:count]
    if stands_for is not None:
        weights = weights_standing_for(count, len(rows), stands_for, seed)
    models = []
    for replicate, start in enumerate(starts):
        found = _afresh(model, start)
        found.initialise(derive_generator(seed, "replicate", replicate))
        models.append(found.float())
    generator, effort = derive_generator(seed, "particles"), settings.integration.completions
    times = replication.completions_of_networks
    with timings.stage("completing rows"):
        completions = Completions.draw(model, rows, times, generator, effort).to(torch.float32)
    order = torch.randperm(len(completions), generator=derive_generator(seed, "held out"))
    held_out = int(replication.held_out * len(order))
    split = order[held_out:], order[:held_out]
    training = replace(settings.training, steps_an_epoch=replication.steps_an_epoch)
    settings = replace(settings, training=training)
    with timings.stage("training"):
        train_ensemble(models, completions, split, weights.float(), settings, seed, watch)
    models = [found.double().eval().requires_grad_(requires_grad=False) for found in models]
    doubt = None if line is None else line.doubt
    return Replicates(models, replication, doubt=doubt, line=line)


def _by_some(
    model: StructuralModel,
    rows: RowSource,
    count: int,
    settings: Settings,
    seed: int,
    timings: Timings,
) -> Replicates | None:
    """Returns replicates by rows that stand for all; None where these are too few to tell."""
    some = rows_by_chance(rows, settings.streaming.information_rows)
    weights = bootstrap_weights(count, len(some), seed)
    found = _one_step(model, some, weights, settings, seed, timings, len(rows))
    about = found.information
    if found.doubt is None and about is not None:
        shares = about.fewest_shares()
        if shares >= settings.replicates.fewest_shares:
            return found
        logger.debug("%d rows are too few for an interval: %.0f shares.", len(some), shares)
    return None


def _is_solved(model: StructuralModel) -> bool:
    """Says whether the model has nothing that is trained."""
    return all(model.block(block).solvable for block in range(len(model.blocks)))


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


def _one_step(
    model: StructuralModel,
    rows: RowSource,
    weights: Tensor,
    settings: Settings,
    seed: int,
    timings: Timings,
    stands_for: int | None = None,
) -> Replicates:
    """Returns the lines and curves of each set of weights, (B, N)."""
    generator, effort = derive_generator(seed, "particles of the line"), settings.integration
    replication = settings.replicates
    times = replication.completions_of_solved
    with timings.stage("completing rows"):
        completions = Completions.draw(model, rows, times, generator, effort.completions)
    with timings.stage("information"):
        found = measure_information(model, completions, replication)
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
    if stands_for is not None:
        found = found.standing_for(stands_for)
    moves = found.replicate_moves(weights, seed)
    models = [moved(model, move) for move in moves]
    return Replicates(models, replication, moves, found, _doubt(model, rows, found))


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
